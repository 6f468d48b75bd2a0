//! A run as `tollgate run` and `tollgate show` print it.

pub(crate) mod cells;
pub mod counters;
pub mod csv;
pub mod json;
pub(crate) mod names;
mod rates;
pub mod text;

use tollgate_model::Unit;

use crate::facts;
use crate::summary::{Figures, Summary};

/// The median in cycles of the TSC, where that was the clock.
fn cycles(figures: &Figures, summary: &Summary) -> Option<f64> {
    let is_known = figures.measured.unit == Unit::Nanoseconds && facts::clock_is_tsc(&summary.run.facts);
    is_known.then_some(figures.estimate.median * figures.measured.clock_hz as f64 / 1e9)
}
