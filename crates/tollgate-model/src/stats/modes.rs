//! Whether samples gather at two levels.

use serde::{Deserialize, Serialize};

use super::interval::half_binomial_at_most;
use super::order::{median, quantile, sorted};

/// One level that samples gather at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mode {
    /// The median of the samples of this level, in their unit.
    pub at: f64,
    /// Their share of all samples, 0 to 1.
    pub share: f64,
}

/// Fewer samples than this are never called bimodal.
const FEWEST: usize = 40;
/// A smaller group than this share of the samples is a tail, not a level.
const SMALLEST_SHARE: f64 = 0.07;
/// A level has at least this share of its group near its middle; a tail has not.
const GATHERED: f64 = 0.4;
/// A valley holds at most one in so many of what the smaller level holds in the same width.
const VALLEY: usize = 4;
/// The chance at which a valley could be none.
const CHANCE: f64 = 1e-4;
/// The levels lie at least so many of the smallest steps apart that the samples have: steps of the clock are no levels.
const STEPS: f64 = 6.0;
/// The upper level lies above the lower by at least this share of it: nearer ones are one price to whoever pays it.
const APART: f64 = 0.02;
/// Shares of the samples left out at each end when the two groups are looked for: spikes would draw the
/// division to themselves.
const CLIPS: [f64; 3] = [0.0, 0.02, 0.06];

/// The levels that the samples gather at, the lower first: one (the median), or two where there is clearly a
/// valley between. None at all when there are no samples.
///
/// The samples are divided in two groups, as k-means in one dimension does (Fisher, "On Grouping for
/// Maximum Homogeneity", 1958). They are two levels if each gathers about its median, and if the middle
/// third between the two medians is nearly empty beside windows of the same width about the medians, by
/// more than chance (sign test). Samples that have only two values are one level: two values next to each
/// other on a coarse clock look the same.
pub fn modes(samples: &[f64]) -> Vec<Mode> {
    let sorted = sorted(samples);
    let Some(at) = quantile(&sorted, 0.5) else { return Vec::new() };
    match find_split(&sorted) {
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

/// Where the upper level begins.
fn find_split(sorted: &[f64]) -> Option<usize> {
    if sorted.len() < FEWEST || !sorted.iter().all(|sample| sample.is_finite()) {
        return None;
    }
    let scaled = scale(sorted)?;
    let step = smallest_step(&scaled)?;
    CLIPS.into_iter().find_map(|clip| {
        let left_out = (clip * scaled.len() as f64) as usize;
        let split = left_out + divide(&scaled[left_out..scaled.len() - left_out])?;
        let (lower, upper) = sorted.split_at(split);
        let apart = quantile(upper, 0.5)? - quantile(lower, 0.5)?;
        let matters = apart >= APART * quantile(lower, 0.5)?.abs();
        (matters && is_valley(&scaled, split, step)).then_some(split)
    })
}

/// The samples about their median and below 2 in size, so that squares and sums are finite.
fn scale(sorted: &[f64]) -> Option<Vec<f64>> {
    let middle = quantile(sorted, 0.5)?;
    let largest = sorted.first()?.abs().max(sorted.last()?.abs());
    (largest > 0.0).then(|| sorted.iter().map(|sample| sample / largest - middle / largest).collect())
}

/// The smallest difference between neighbours that is more than rounding; None when all are equal.
fn smallest_step(scaled: &[f64]) -> Option<f64> {
    const ROUNDING: f64 = 1e-9;
    let steps = scaled.windows(2).map(|pair| pair[1] - pair[0]).filter(|&step| step > ROUNDING);
    steps.min_by(f64::total_cmp)
}

/// Where the upper of two groups begins so that the squares within the groups are smallest, which is where
/// the square between them is largest.
fn divide(scaled: &[f64]) -> Option<usize> {
    let all: f64 = scaled.iter().sum();
    let n = scaled.len() as f64;
    let mut below = 0.0;
    let mut best = (0.0, None);
    for (index, pair) in scaled.windows(2).enumerate() {
        below += pair[0];
        let count = (index + 1) as f64;
        let apart = (all - below) / (n - count) - below / count;
        let between = count * (n - count) * apart * apart;
        if between > best.0 && pair[1] > pair[0] {
            best = (between, Some(index + 1));
        }
    }
    best.1
}

fn is_valley(scaled: &[f64], split: usize, step: f64) -> bool {
    let (lower, upper) = scaled.split_at(split);
    let smallest = (SMALLEST_SHARE * scaled.len() as f64).ceil() as usize;
    let (Some(low), Some(high)) = (median(lower), median(upper)) else { return false };
    let apart = high - low;
    if lower.len().min(upper.len()) < smallest || apart < STEPS * step {
        return false;
    }
    let near = |centre: f64| {
        let from = scaled.partition_point(|&x| x < centre - apart / 6.0);
        let to = scaled.partition_point(|&x| x <= centre + apart / 6.0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_nobody_would_pay_attention_to_are_one() {
        let at = |level: f64| (0..100).map(move |n| level + f64::from(n % 10) * 0.001);
        let two = |upper: f64| modes(&at(100.0).chain(at(upper)).collect::<Vec<_>>()).len();
        assert_eq!(two(101.0), 1);
        assert_eq!(two(103.0), 2);
    }
}
