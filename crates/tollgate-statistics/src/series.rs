//! Series in the order of time whose values resemble their neighbours, such as the medians of processes: a host keeps a pace for
//! seconds, and each of these seconds says about as much as one value.

use crate::correlation::centred_ranks;
use crate::interval::{Interval, sign_test_rank};
use crate::normal::normal_quantile;
use crate::order::{median, sorted};

/// The most lags from which an integrated autocorrelation time is estimated.
const MOST_LAGS: usize = 256;

/// The estimated autocorrelation time is too low for short series. A comparison of two multiplies its excess over 1 by this.
const CAUTION: f64 = 1.5;

/// The factor for an interval: simulated intervals hold their confidence from about 13 independent values, see
/// `tests/rates_of_statistics.rs`.
const INTERVAL_CAUTION: f64 = 2.0;

/// Returns the number of independent values whose median would vary as much as that of `series`; at most its length.
///
/// It is the length over the integrated autocorrelation time of the indicator "above the median", on which the sign test rests.
/// Autocorrelations are summed while the sums of neighbouring two are positive and fall (Geyer, "Practical Markov Chain Monte
/// Carlo", 1992, initial monotone sequence).
pub fn effective_number(series: &[f64]) -> f64 {
    effective(series, CAUTION)
}

/// Like [`effective_number`], but a short series counts as independent: its autocorrelation is chance.
pub fn independent_number(series: &[f64]) -> f64 {
    const SHORT: usize = 20;
    if series.len() < SHORT { series.len() as f64 } else { effective_number(series) }
}

fn effective(series: &[f64], caution: f64) -> f64 {
    series.len() as f64 / (1.0 + caution * (autocorrelation_time(&sides(series)) - 1.0))
}

/// 1 above the median, -1 below, 0 at it.
fn sides(series: &[f64]) -> Vec<f64> {
    let middle = median(series).unwrap_or_default();
    let side = |value: &f64| f64::from(i8::from(*value > middle) - i8::from(*value < middle));
    series.iter().map(side).collect()
}

/// The sum of the products of scores that lie `lag` apart.
fn product(scores: &[f64], lag: usize) -> f64 {
    scores.iter().zip(&scores[lag..]).map(|(one, later)| one * later).sum()
}

/// The effective number of a series that is looked at repeatedly, by the autocorrelation of its ranks. A time that
/// is sometimes estimated too low would end the measurement then, so the estimate is raised by ten times its share of the values.
/// With this the simulations of `tests/rates_however_often.rs` hold for levels that last a tenth of the series.
pub fn cautious_number(series: &[f64]) -> f64 {
    cautious(series.len() as f64, long_autocorrelation_time(&centred_ranks(series)))
}

/// The cautious number of `number` values that do not resemble their neighbours.
pub(crate) fn independent_worth(number: usize) -> f64 {
    cautious(number as f64, 1.0)
}

fn cautious(number: f64, time: f64) -> f64 {
    const UNCERTAIN: f64 = 10.0;
    number / ((1.0 + INTERVAL_CAUTION * (time - 1.0)) * (1.0 + UNCERTAIN * time / number))
}

/// The integrated autocorrelation time over up to half of the scores. Many scores are first reduced to stretches.
fn long_autocorrelation_time(scores: &[f64]) -> f64 {
    const MOST: usize = 2048;
    let each = scores.len().div_ceil(MOST).max(1);
    if each == 1 {
        return autocorrelation_time_within(scores, scores.len() / 2);
    }
    let sums: Vec<f64> = scores.chunks_exact(each).map(|stretch| stretch.iter().sum()).collect();
    let variance = product(scores, 0) / scores.len() as f64 * each as f64;
    let grown = product(&sums, 0) / sums.len() as f64 / variance.max(f64::MIN_POSITIVE);
    (grown * autocorrelation_time_within(&sums, sums.len() / 2)).max(1.0)
}

/// The integrated autocorrelation time of scores about 0, in values; at least 1.
fn autocorrelation_time(scores: &[f64]) -> f64 {
    autocorrelation_time_within(scores, MOST_LAGS)
}

fn autocorrelation_time_within(scores: &[f64], most_lags: usize) -> f64 {
    let variance = product(scores, 0);
    if variance == 0.0 {
        return 1.0;
    }
    let (mut time, mut last) = (-1.0, f64::MAX);
    for lag in (0..scores.len().saturating_sub(1).min(most_lags)).step_by(2) {
        let pair = ((product(scores, lag) + product(scores, lag + 1)) / variance).min(last);
        if pair <= 0.0 {
            break;
        }
        time += 2.0 * pair;
        last = pair;
    }
    time.max(1.0)
}

/// Returns the confidence interval of the median of values in the order of time: that of the sign test for as many
/// independent values as the series is worth by its autocorrelation, at most `most`. It is the range of all values if these are
/// too few for the confidence. `None` if even independent values would be too few.
pub fn series_interval(series: &[f64], most: f64, confidence: f64) -> Option<Interval> {
    let independent = sign_test_rank(series.len(), confidence)?;
    let effective = effective(series, INTERVAL_CAUTION).min(most.max(1.0));
    // The normal limit of the sign test's rank has no steps for a fractional number.
    let z = normal_quantile(0.5 + confidence / 2.0);
    let share = 0.5 - 0.5 * z / effective.sqrt();
    let rank = ((share * series.len() as f64) as usize).clamp(1, independent);
    let sorted = sorted(series);
    Some(Interval { low: sorted[rank - 1], high: sorted[series.len() - rank] })
}

/// How far the two halves of a series lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// The median of the second half over the median of the first.
    pub ratio: f64,
    /// Whether each median lies outside the other half's interval, which is more than the resemblance of neighbours explains.
    pub beyond_interval: bool,
}

/// Returns the drift from the first half to the second. `None` if a half has too few values, or if a median is not above zero.
pub fn drift(series: &[f64], confidence: f64) -> Option<Drift> {
    let (first, second) = series.split_at(series.len() / 2);
    let half = |values: &[f64]| Some((median(values)?, series_interval(values, f64::INFINITY, confidence)?));
    let ((before, around_before), (after, around_after)) = (half(first)?, half(second)?);
    let ratio = after / before;
    let beyond_interval = !around_before.contains(after) && !around_after.contains(before);
    (before > 0.0 && ratio > 0.0 && ratio.is_finite()).then_some(Drift { ratio, beyond_interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stretches of equal length that alternate between two levels.
    fn stretches(length: usize, number: usize) -> Vec<f64> {
        (0..length * number).map(|at| (at / length % 2) as f64).collect()
    }

    #[test]
    fn a_stretch_counts_about_once() {
        let alternating = effective_number(&stretches(1, 200));
        assert_eq!(alternating, 200.0);
        for length in [4, 10, 20] {
            let effective = effective_number(&stretches(length, 20));
            assert!((10.0..=40.0).contains(&effective), "{length}: {effective}");
        }
        assert_eq!(effective_number(&[1.0; 50]), 50.0);
        assert_eq!(effective_number(&[]), 0.0);
        assert_eq!(effective_number(&[f64::NAN, 1.0]), 2.0);
    }

    #[test]
    fn long_series_are_judged_by_their_stretches() {
        for length in [1, 20, 100] {
            let levels: Vec<f64> = (0..20_000).map(|at| f64::from(at / length * 7919 % 211)).collect();
            let time = long_autocorrelation_time(&centred_ranks(&levels));
            let expected = f64::from(length);
            assert!((0.5 * expected..2.0 * expected + 1.0).contains(&time), "{length}: {time}");
        }
        assert_eq!(long_autocorrelation_time(&[0.0; 5000]), 1.0);
    }

    #[test]
    fn an_interval_of_two_stretches_is_their_range() {
        let series: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(series_interval(&series, f64::INFINITY, 0.95), Some(Interval { low: 0.0, high: 99.0 }));
        assert_eq!(series_interval(&series[..5], f64::INFINITY, 0.95), None);
        let six = [6.0, 1.0, 5.0, 2.0, 4.0, 3.0];
        assert_eq!(series_interval(&six, f64::INFINITY, 0.95), Some(Interval { low: 1.0, high: 6.0 }));
        assert_eq!(series_interval(&six, f64::INFINITY, f64::NAN), None);
    }

    #[test]
    fn a_step_is_drift_and_noise_is_not() {
        let noisy = |at: usize| 100.0 + (at * 7919 % 13) as f64;
        let calm: Vec<f64> = (0..60).map(noisy).collect();
        let found = drift(&calm, 0.95).unwrap();
        assert!(!found.beyond_interval && (found.ratio - 1.0).abs() < 0.05, "{found:?}");
        let step: Vec<f64> = (0..60).map(|at| noisy(at) + if at < 30 { 0.0 } else { 40.0 }).collect();
        let found = drift(&step, 0.95).unwrap();
        assert!(found.beyond_interval && (found.ratio - 1.37).abs() < 0.05, "{found:?}");
        assert_eq!(drift(&calm[..11], 0.95), None);
        assert_eq!(drift(&[0.0; 20], 0.95), None);
    }
}
