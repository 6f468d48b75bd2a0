//! The difference below which nothing is called.

use std::collections::HashMap;

use super::index::Index;
use super::paired::median_ratio;
use crate::measurement::{Measured, Unit};
use crate::price::Level;
use crate::stats;

/// No smaller difference is ever called, whatever the samples say.
pub const LEAST_FLOOR: f64 = 0.01;

/// The probe that is the same code as the one it is held against, as a second arm of the same rounds: what
/// it differs by is the error of a comparison.
pub const TWIN: &str = "bench/twin";

/// The probe of the empty loop's own cost per iteration, not subtracted from anything: the pace of the processor.
pub const RAW_LOOP: &str = "bench/empty-loop-raw";

/// How far 1 and `ratio` are apart as a relative difference: 0.25 for both 1.25 and 0.8. None where that is not a number.
fn distance(ratio: f64) -> Option<f64> {
    let distance = ratio.max(1.0 / ratio) - 1.0;
    (ratio > 0.0 && distance.is_finite()).then_some(distance)
}

/// What the twins of a run differ by, `except` left out: a twin is not its own measure.
pub(super) fn of_twins(index: &Index<'_>, except: Option<&Measured>) -> f64 {
    let twins = index.measured().filter(|(case, _)| case.probe == TWIN).map(|(_, twin)| twin);
    let others = twins.filter(|twin| !except.is_some_and(|except| std::ptr::eq(*twin, except)));
    let distances = others.filter_map(|twin| {
        let against = index.measured_case(twin.against.as_ref()?)?;
        distance(median_ratio(twin, against)?)
    });
    distances.fold(0.0, f64::max)
}

/// How far the price drifts over the length of a run, if the medians of its processes clearly climb or fall
/// in the order of time: another run of the same place would lie that far off by the drift alone.
///
/// (Halves of the run would show it too, but 7 processes are too few for halves, and two halves at two
/// levels are no drift.)
pub(super) fn of_drift(logs_of_process_medians: &[f64]) -> f64 {
    const CONFIDENCE: f64 = 0.99;
    let slope = stats::significant_slope(logs_of_process_medians, CONFIDENCE).unwrap_or(0.0);
    let over_the_run = slope * logs_of_process_medians.len() as f64;
    distance(over_the_run.exp()).unwrap_or(f64::MAX.sqrt())
}

/// By how much the processor itself went faster or slower in one run than in the other, group by group.
pub(super) struct Pace {
    by_group: HashMap<String, f64>,
    /// Of the first raw loop that both have.
    elsewhere: f64,
}

impl Pace {
    pub(super) fn between(base: &Index<'_>, other: &Index<'_>) -> Self {
        let mut pace = Self { by_group: HashMap::new(), elsewhere: 0.0 };
        for (case, base) in base.measured().filter(|(case, _)| case.probe == RAW_LOOP) {
            let Some(other) = other.measured_case(case) else { continue };
            let Some(difference) = difference_in_pace(base, other) else { continue };
            if pace.by_group.is_empty() {
                pace.elsewhere = difference;
            }
            pace.by_group.entry(base.group.clone()).or_insert(difference);
        }
        pace
    }

    /// What the floor of a row rises by.
    pub(super) fn of(&self, measured: &Measured) -> f64 {
        if measured.unit == Unit::Bytes {
            return 0.0;
        }
        self.by_group.get(&measured.group).copied().unwrap_or(self.elsewhere)
    }
}

fn difference_in_pace(base: &Measured, other: &Measured) -> Option<f64> {
    if base.unit != other.unit {
        return None;
    }
    distance(Level::of(other)?.median / Level::of(base)?.median)
}
