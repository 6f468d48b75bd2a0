use serde::{Deserialize, Serialize};

use crate::interval::half_binomial_at_most;
use crate::order::{quantile, sorted};

/// One mode of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mode {
    /// The median of the samples of this mode, in their unit.
    pub at: f64,
    /// Their share of all samples, 0 to 1.
    pub share: f64,
}

/// Fewer samples are never called bimodal.
const FEWEST: usize = 40;
/// A smaller group than this share of the samples is a tail, not a mode.
const SMALLEST_SHARE: f64 = 0.07;
/// A mode has at least this share of its group near its middle; a tail does not.
const GATHERED: f64 = 0.4;
/// In windows of the same width, the smaller mode holds more than this many times the samples of a valley.
const VALLEY: usize = 4;
/// The significance level of a valley.
const CHANCE: f64 = 1e-4;
/// Modes lie at least this many of the samples' smallest steps apart: steps of the clock are not modes.
const STEPS: f64 = 6.0;
/// The upper mode lies above the lower by at least this share of it. A smaller difference does not matter in practice.
const APART: f64 = 0.02;
/// Shares of samples at each end to leave out when they are divided: spikes would attract the division.
const CLIPS: [f64; 3] = [0.0, 0.02, 0.06];

/// Returns the modes of the samples, the lower first: none without samples, one (the median), or two with a clear valley between.
///
/// The samples are divided into two groups, as k-means in one dimension does (Fisher, "On Grouping for Maximum Homogeneity", 1958).
/// They are two modes if each group is concentrated about its median, and if the middle third between the medians is nearly empty
/// compared with windows of the same width about the medians, by more than chance (sign test). Two neighbouring values of a coarse
/// clock are one.
pub fn modes(samples: &[f64]) -> Vec<Mode> {
    modes_of_sorted(&sorted(samples))
}

/// Like [`modes`] for sorted samples, without a copy: there may be millions.
pub fn modes_of_sorted(sorted: &[f64]) -> Vec<Mode> {
    let Some(at) = quantile(sorted, 0.5) else { return Vec::new() };
    match find_split(sorted) {
        Some(split) => {
            let (lower, upper) = sorted.split_at(split);
            [lower, upper].into_iter().filter_map(|group| mode(group, sorted.len())).collect()
        }
        None => vec![Mode { at, share: 1.0 }],
    }
}

fn mode(group: &[f64], all: usize) -> Option<Mode> {
    Some(Mode { at: quantile(group, 0.5)?, share: group.len() as f64 / all as f64 })
}

/// Returns the index at which the upper mode begins.
fn find_split(sorted: &[f64]) -> Option<usize> {
    if sorted.len() < FEWEST || !sorted.iter().all(|sample| sample.is_finite()) {
        return None;
    }
    let scale = Scale::of(sorted)?;
    let step = scale.smallest_step(sorted)?;
    CLIPS.into_iter().find_map(|clip| {
        let left_out = (clip * sorted.len() as f64) as usize;
        let split = left_out + scale.divide(&sorted[left_out..sorted.len() - left_out])?;
        let (lower, upper) = sorted.split_at(split);
        let apart = quantile(upper, 0.5)? - quantile(lower, 0.5)?;
        let matters = apart >= APART * quantile(lower, 0.5)?.abs();
        (matters && scale.is_valley(sorted, split, step)).then_some(split)
    })
}

/// Moves samples about their median and scales them below 2, so that squares and sums are finite.
#[derive(Clone, Copy)]
struct Scale {
    middle: f64,
    largest: f64,
}

impl Scale {
    fn of(sorted: &[f64]) -> Option<Self> {
        let middle = quantile(sorted, 0.5)?;
        let largest = sorted.first()?.abs().max(sorted.last()?.abs());
        (largest > 0.0).then_some(Self { middle, largest })
    }

    fn at(self, sample: f64) -> f64 {
        sample / self.largest - self.middle / self.largest
    }

    /// The smallest difference between neighbours that exceeds rounding; `None` if all are equal.
    fn smallest_step(self, sorted: &[f64]) -> Option<f64> {
        const ROUNDING: f64 = 1e-9;
        let steps = sorted.windows(2).map(|pair| self.at(pair[1]) - self.at(pair[0]));
        steps.filter(|&step| step > ROUNDING).min_by(f64::total_cmp)
    }

    /// Returns where the upper group begins so that the sum of squares within the groups is smallest: the one between them is largest.
    fn divide(self, sorted: &[f64]) -> Option<usize> {
        let all: f64 = sorted.iter().map(|&sample| self.at(sample)).sum();
        let n = sorted.len() as f64;
        let mut below = 0.0;
        let mut best = (0.0, None);
        for (index, pair) in sorted.windows(2).enumerate() {
            below += self.at(pair[0]);
            let count = (index + 1) as f64;
            let apart = (all - below) / (n - count) - below / count;
            let between = count * (n - count) * apart * apart;
            if between > best.0 && self.at(pair[1]) > self.at(pair[0]) {
                best = (between, Some(index + 1));
            }
        }
        best.1
    }

    fn is_valley(self, sorted: &[f64], split: usize, step: f64) -> bool {
        let (lower, upper) = sorted.split_at(split);
        let smallest = (SMALLEST_SHARE * sorted.len() as f64).ceil() as usize;
        let median = |group| quantile(group, 0.5).map(|median| self.at(median));
        let (Some(low), Some(high)) = (median(lower), median(upper)) else { return false };
        let apart = high - low;
        if lower.len().min(upper.len()) < smallest || apart < STEPS * step {
            return false;
        }
        let near = |centre: f64| {
            let from = sorted.partition_point(|&x| self.at(x) < centre - apart / 6.0);
            let to = sorted.partition_point(|&x| self.at(x) <= centre + apart / 6.0);
            to - from
        };
        let (at_low, between, at_high) = (near(low), near(low.midpoint(high)), near(high));
        let gathered = |at: usize, group: &[f64]| at as f64 >= GATHERED * group.len() as f64;
        let smaller = at_low.min(at_high);
        gathered(at_low, lower)
            && gathered(at_high, upper)
            && between * VALLEY < smaller
            && half_binomial_at_most(between + smaller, between) <= CHANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_differ_by_one_percent_are_one() {
        let at = |level: f64| (0..100).map(move |n| level + f64::from(n % 10) * 0.001);
        let two = |upper: f64| modes(&at(100.0).chain(at(upper)).collect::<Vec<_>>()).len();
        assert_eq!(two(101.0), 1);
        assert_eq!(two(103.0), 2);
    }
}
