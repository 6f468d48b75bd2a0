//! A run that has just been made.

use std::time::SystemTime;

use tollgate_model::run::{SCHEMA, Tool};
use tollgate_model::{Facts, Label, Measurement, Run};
use tollgate_store::destination::new_id;

use crate::failure::Failure;

/// Fails if no id is free.
pub fn ended_run(
    began: SystemTime,
    label: Option<Label>,
    facts: Facts,
    measurements: Vec<Measurement>,
) -> Result<Run, Failure> {
    let written = |time: SystemTime| humantime::format_rfc3339_seconds(time).to_string();
    Ok(Run {
        schema: SCHEMA,
        tool: tool(),
        id: new_id(began)?,
        label,
        environment: tollgate_inspect::environment(&facts),
        session: None,
        started: written(began),
        // The clock may have been set back meanwhile.
        finished: written(SystemTime::now().max(began)),
        facts,
        measurements,
    })
}

pub fn tool() -> Tool {
    Tool { name: env!("CARGO_PKG_NAME").to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}
