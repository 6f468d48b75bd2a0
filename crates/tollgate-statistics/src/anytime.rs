//! Intervals of a median that hold at all looks together, while more values arrive.

use crate::interval::{Interval, repeated_rank};
use crate::order::sorted;
use crate::series::cautious_number;

/// Fewer values have no interval.
pub const FEWEST: usize = 6;

/// Fewer values do not show how long a level lasts, and have no interval by ranks at 99.9 %. Fewer independent ones do not end a measurement.
pub(crate) const FEWEST_SETTLED: usize = 14;

/// The ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ends {
    /// The value of this rank from the smallest and from the largest.
    Rank {
        /// Counted from 1.
        rank: usize,
        /// Whether there are enough values to end the measurement.
        is_settled: bool,
    },
    /// The range of all values, extended at both ends by this many of its widths. It holds only for a single look.
    Beyond(f64),
}

impl Ends {
    /// Returns the ends for the median of a series in the order of time. `None` if the values count as fewer than six.
    ///
    /// If m is the median, "above m" is a fair coin. With k of n values below m, and a uniform prior on the share of heads
    /// otherwise, P(k of n by a fair coin) (n + 1) is the inverse of a martingale. The probability that it ever falls to 1 -
    /// `confidence` is at most 1 - `confidence` (Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm",
    /// 1970; Howard & Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm identification",
    /// Bernoulli 28, 2022). So the interval of all m that were not excluded holds at all looks together, for any distribution.
    /// Differences of two equal things in random order are fair coins about 0 even if both have much in common.
    ///
    /// Values that resemble their neighbours count as fewer, see `cautious_number`.
    pub fn new(series: &[f64], confidence: f64) -> Option<Self> {
        /// The range of fewer values is narrower, so it is extended, since it must not decide more often.
        const MANY: f64 = 24.0;
        let number = series.len();
        if number < FEWEST || !series.iter().all(|value| value.is_finite()) {
            return None;
        }
        if number < FEWEST_SETTLED {
            return Some(Self::Beyond(beyond(number)));
        }
        let worth = cautious_number(series) as usize;
        match repeated_rank(worth, confidence) {
            Some(rank) => {
                let beside = (worth as f64 / 2.0 - rank as f64) * number as f64 / worth as f64;
                let rank = ((number as f64 / 2.0 - beside) as usize).max(1);
                Some(Self::Rank { rank, is_settled: worth >= FEWEST_SETTLED })
            }
            // Earlier looks are possible, so this is wider than for a few values that are looked at once.
            None => (worth >= FEWEST).then_some(Self::Beyond((MANY / number as f64).max(1.0))),
        }
    }

    /// Returns the interval of `values`, which replace those that the ends were computed from. `None` if an end is not finite.
    pub fn interval(self, values: &[f64]) -> Option<Interval> {
        let sorted = sorted(values);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let interval = match self {
            Self::Rank { rank, .. } => Interval {
                low: *sorted.get(rank.min(sorted.len()) - 1)?,
                high: *sorted.get(sorted.len().checked_sub(rank)?)?,
            },
            Self::Beyond(widths) => {
                let more = widths * (last - first);
                Interval { low: first - more, high: last + more }
            }
        };
        (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
    }

    /// Whether measuring may end once the interval is narrow.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Rank { is_settled: true, .. })
    }
}

/// Returns the confidence interval of the median of a series in time that is looked at repeatedly, if enough values are independent.
pub fn anytime_interval(series: &[f64], confidence: f64) -> Option<Interval> {
    Ends::new(series, confidence)?.interval(series)
}

/// Like [`anytime_interval`], but `None` unless there are enough values to end the measurement.
pub fn settled_interval(series: &[f64], confidence: f64) -> Option<Interval> {
    Ends::new(series, confidence).filter(|ends| ends.is_settled())?.interval(series)
}

/// Like [`anytime_interval`], but by ranks alone, so that the ends are values of the series.
pub fn ranked_interval(series: &[f64], confidence: f64) -> Option<Interval> {
    Ends::new(series, confidence).filter(|ends| matches!(ends, Ends::Rank { .. }))?.interval(series)
}

/// The interval of values whose signs about their median are independent coins, such as differences of equal things whose order
/// was drawn for each. All count, however much neighbours resemble each other. `None` with too few.
pub(crate) fn interval_of_coins(values: &[f64], confidence: f64) -> Option<Interval> {
    let rank = repeated_rank(values.len(), confidence)?;
    Ends::Rank { rank, is_settled: true }.interval(values)
}

/// Widths to add to the range of `number` differences. The centre lies beyond once in 4,000 for normal, double exponential and
/// Student's distributions (2 degrees of freedom), and once in 1,000 for uniform ones: 400,000 simulated sets of each number.
fn beyond(number: usize) -> f64 {
    match number {
        ..7 => 1.0,
        7 => 0.6,
        8 => 0.4,
        9 => 0.3,
        10 => 0.2,
        11 => 0.1,
        _ => 0.05,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_their_range_and_more() {
        let few = [3.0, 1.0, 2.0, 5.0, 4.0, 6.0];
        assert_eq!(anytime_interval(&few, 0.999), Some(Interval { low: -4.0, high: 11.0 }));
        assert_eq!(settled_interval(&few, 0.999), None);
        assert_eq!(anytime_interval(&few[..5], 0.999), None);
        assert_eq!(anytime_interval(&[f64::NAN; 9], 0.9), None);
        assert_eq!(anytime_interval(&[f64::MAX, -f64::MAX, 0.0, 1.0, 2.0, 3.0], 0.9), None);
        assert_eq!(anytime_interval(&[0.25; 3000], 0.999), Some(Interval { low: 0.25, high: 0.25 }));
    }

    #[test]
    fn values_that_resemble_their_neighbours_count_as_fewer() {
        let width = |values: &[f64]| {
            let Interval { low, high } = anytime_interval(values, 0.99).unwrap();
            high - low
        };
        let apart: Vec<f64> = (0..400).map(|at| f64::from(at * 7919 % 211)).collect();
        let steps: Vec<f64> = (0..400).map(|at| f64::from(at / 10 * 7919 % 211)).collect();
        assert!(width(&steps) > 1.8 * width(&apart), "{} {}", width(&steps), width(&apart));
        // A level that lasts for half of the series is not the median of many values.
        let halves: Vec<f64> =
            (0..400).map(|at| f64::from(at / 200) + f64::from(at * 7919 % 211) / 1e4).collect();
        assert_eq!(settled_interval(&halves, 0.99), None);
    }

    /// Another quantity with the same order excludes 0 if this one does.
    #[test]
    fn ends_serve_other_values_of_the_same_order() {
        let logs: Vec<f64> = (0..60).map(|at| 0.02 + f64::from(at * 7919 % 61 - 30) / 1000.0).collect();
        let ends = Ends::new(&logs, 0.999).unwrap();
        let adds: Vec<f64> = logs.iter().map(|log| 1e6 * log.exp_m1()).collect();
        let [one, other] = [&logs, &adds].map(|values| ends.interval(values).unwrap());
        assert_eq!(one.low > 0.0, other.low > 0.0);
        assert!((one.high.exp_m1() * 1e6 - other.high).abs() < 1e-6);
    }
}
