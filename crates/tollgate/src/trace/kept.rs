//! A traced command as a run document, which `tollgate show` and `tollgate compare` read like any other.

use std::time::SystemTime;

use tollgate_model::{Case, Facts, Label, Measured, Measurement, Outcome, Provenance, Run, Traced, Unit};
use tollgate_trace::output::CASE;

use crate::document;
use crate::failure::Failure;
use tollgate_view::facts;

const GROUP: &str = "trace";

/// The one sample is the command's real time.
pub fn document(
    began: SystemTime,
    label: Option<Label>,
    facts: Facts,
    traced: Traced,
) -> Result<Run, Failure> {
    let provenance = if facts::emulated(&facts) { Provenance::QemuTcg } else { Provenance::Hardware };
    let wall = vec![traced.wall_ns as f64];
    let measured = Measured {
        provenance,
        traced: vec![traced],
        traced_apart: Vec::new(),
        ..Measured::of_executions(GROUP, Unit::Nanoseconds, wall)
    };
    let outcome = Outcome::Measured(Box::new(measured));
    document::ended_run(began, label, facts, vec![Measurement { case: Case::plain(CASE), outcome }])
}
