//! A case in two environments whose turns alternated.

use super::rounds::{finite, join};
use crate::measurement::Measured;
use crate::stats;

/// The pairs of turns that both environments kept, in short.
pub(super) struct Turns {
    /// For each pair of processes that has a ratio, in the order of time: the medians of ln(other / base) of stretches of its turns.
    pub(super) logs: Vec<Vec<f64>>,
    /// For each pair of processes, likewise the medians of other - base.
    pub(super) differences: Vec<Vec<f64>>,
    /// Pairs of turns.
    pub(super) number: usize,
    /// Those of them in which a side is not above zero, and has no ratio.
    pub(super) without_ratio: usize,
    /// The rank correlation of the two sides of a pair of turns.
    pub(super) correlation: Option<f64>,
}

/// More pairs of turns tell no more of their correlation: its error is 0.02.
const ENOUGH_TO_CORRELATE: usize = 4096;

/// Turns of a stretch, at least: what one interrupt does to it is little.
const OF_STRETCH: usize = 3;

/// More stretches of all pairs together tell no more.
const ENOUGH_STRETCHES: usize = 600;

impl Turns {
    pub(super) fn new(base: &Measured, other: &Measured) -> Self {
        let mut turns =
            Self { logs: vec![], differences: vec![], number: 0, without_ratio: 0, correlation: None };
        let processes = base.processes.len().min(other.processes.len());
        let most = (ENOUGH_STRETCHES / processes.max(1)).max(1);
        let step = base.samples.len().min(other.samples.len()) / ENOUGH_TO_CORRELATE + 1;
        let (mut some_base, mut some_other) = (Vec::new(), Vec::new());
        let (mut ratios, mut differences) = (Vec::new(), Vec::new());
        for process in join(base, other) {
            ratios.clear();
            differences.clear();
            for (base, other) in process {
                if turns.number.is_multiple_of(step) {
                    some_base.push(base);
                    some_other.push(other);
                }
                turns.number += 1;
                if base > 0.0 && other > 0.0 {
                    ratios.push(other / base);
                } else {
                    turns.without_ratio += 1;
                }
                differences.push(finite(other - base));
            }
            turns.logs.extend(medians(&mut ratios, most, median_log));
            turns.differences.extend(medians(&mut differences, most, stats::median_of));
        }
        turns.correlation = stats::rank_correlation(&some_base, &some_other);
        turns
    }
}

/// The medians of at most so many stretches of the turns of a pair. None without a turn.
fn medians(turns: &mut [f64], most: usize, median: fn(&mut [f64]) -> Option<f64>) -> Option<Vec<f64>> {
    let all = turns.len();
    let stretches = (all / OF_STRETCH).clamp(1, most);
    let mut found = Vec::with_capacity(stretches);
    for at in 0..stretches {
        found.push(median(&mut turns[at * all / stretches..(at + 1) * all / stretches])?);
    }
    Some(found)
}

/// The median of the logarithms. Their order is that of the ratios, so only the inner two are taken.
fn median_log(ratios: &mut [f64]) -> Option<f64> {
    let (lower, upper) = stats::inner(ratios)?;
    Some(finite(0.5 * (lower.ln() + upper.ln())))
}
