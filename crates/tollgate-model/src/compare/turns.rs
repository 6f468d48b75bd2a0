use super::rounds::{finite, join};
use crate::measurement::Measured;
use crate::stats;

pub(super) struct Turns {
    /// For each pair of processes that has a ratio, in the order of time: the median of ln(other / base).
    pub(super) logs: Vec<f64>,
    pub(super) differences: Vec<f64>,
    pub(super) number: usize,
    /// Pairs of turns without a ratio, since a side is not above zero.
    pub(super) without_ratio: usize,
    /// Rank correlation of the two sides of a pair of turns.
    pub(super) correlation: Option<f64>,
}

/// More pairs of turns do not improve their correlation: its error is 0.02.
const ENOUGH_TO_CORRELATE: usize = 4096;

impl Turns {
    pub(super) fn new(base: &Measured, other: &Measured) -> Self {
        let mut turns =
            Self { logs: vec![], differences: vec![], number: 0, without_ratio: 0, correlation: None };
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
            turns.logs.extend(median_log(&mut ratios));
            turns.differences.extend(stats::median_of(&mut differences));
        }
        turns.correlation = stats::rank_correlation(&some_base, &some_other);
        turns
    }
}

/// The median of the logarithms. Their order is that of the ratios, so only the inner two are computed.
fn median_log(ratios: &mut [f64]) -> Option<f64> {
    let (lower, upper) = stats::inner(ratios)?;
    Some(finite(0.5 * (lower.ln() + upper.ln())))
}
