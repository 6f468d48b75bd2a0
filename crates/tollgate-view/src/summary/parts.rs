//! The parts of the time of traced commands, each estimated as the whole is.

use std::borrow::Cow;

use tollgate_model::estimate::Estimate;
use tollgate_model::{Measured, Traced, Unit};

use super::Figures;

/// The names of the parts.
pub const PARTS: [&str; 4] = ["real", "user", "sys", "waiting"];

/// A part of a command's time.
pub struct Part {
    /// One of [`PARTS`].
    pub name: &'static str,
    /// In nanoseconds, a sample for each execution.
    pub figures: Figures<'static>,
}

/// The parts, of which there are none without traced commands. Waiting is absent where the tracer missed it in any execution.
pub(super) fn of(measured: &Measured) -> Vec<Part> {
    let time: [fn(&Traced) -> Option<u64>; 4] = [
        |traced| Some(traced.wall_ns),
        |traced| Some(traced.user_ns),
        |traced| Some(traced.sys_ns),
        |traced| Some(traced.idle?.total_ns()),
    ];
    let part = |(name, time): (&'static str, fn(&Traced) -> Option<u64>)| {
        let times: Option<Vec<u64>> = measured.traced.iter().map(time).collect();
        let part = Measured {
            unit: Unit::Nanoseconds,
            provenance: measured.provenance,
            ops_per_sample: measured.ops_per_sample,
            clock_hz: measured.clock_hz,
            samples: times?.into_iter().map(|ns| ns as f64).collect(),
            discarded: measured.discarded,
            processes: measured.processes.clone(),
            counted: None,
            counters: Vec::new(),
            bytes_per_op: None,
            group: String::new(),
            baseline: None,
            notes: Vec::new(),
            traced: Vec::new(),
        };
        let estimate = Estimate::of(&part)?;
        let (below, multiple, paired, parts) = (None, None, None, Vec::new());
        let figures = Figures { measured: Cow::Owned(part), estimate, below, multiple, paired, parts };
        Some(Part { name, figures })
    };
    PARTS.into_iter().zip(time).filter_map(part).collect()
}
