//! The median of values that become more while they are looked at, such as the executions of a command that end when their interval
//! is narrow: an interval that holds at all looks together.

use crate::interval::{Interval, repeated_rank};
use crate::order::sorted;
use crate::series::cautious_number;

/// Fewer values have no interval.
pub const FEWEST: usize = 6;

/// Fewer values do not show how long a level lasts, and at 99.9 % have no interval by ranks. Of fewer independent ones nothing ends.
pub(crate) const FEWEST_SETTLED: usize = 14;

/// Where an interval ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ends {
    /// At the value of this rank from 1, and at that of the same rank from the largest.
    Rank {
        /// The rank.
        rank: usize,
        /// Whether the values are enough that measuring may end.
        is_settled: bool,
    },
    /// So many widths of the range beyond the range of all values. It holds where values are looked at once.
    Beyond(f64),
}

impl Ends {
    /// Those of the median of a series in the order of time, at `confidence`.
    ///
    /// For any number m that the median is, "above m" is a fair coin. With k of n values below m, and the share of heads unknown and
    /// uniform otherwise, P(k of n by a fair coin) (n + 1) is the inverse of a martingale: that it ever falls to 1 - `confidence` has
    /// that probability at most (Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm", 1970; Howard & Ramdas,
    /// "Sequential estimation of quantiles with applications to A/B testing and best-arm identification", Bernoulli 28, 2022). So an
    /// interval of each m that was not excluded holds at all looks together, for values of any distribution. Differences of two equal
    /// things in random order are fair coins about 0 whatever both have in common.
    ///
    /// Values that resemble their neighbours count as fewer, see `cautious_number` of the series. None where these are less than six.
    pub fn new(series: &[f64], confidence: f64) -> Option<Self> {
        /// The range of fewer values is narrower, and may not decide more often than that of so many.
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
            // It may have been looked at before: more than of so few that are looked at once.
            None => (worth >= FEWEST).then_some(Self::Beyond((MANY / number as f64).max(1.0))),
        }
    }

    /// The interval of values in the place of those that it was made of. None where an end is not finite.
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

    /// Whether measuring may end where it is narrow.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Rank { is_settled: true, .. })
    }
}

/// The confidence interval of the median of a series in the order of time that is looked at again and again. None with too few values
/// that are independent of their neighbours.
pub fn anytime_interval(series: &[f64], confidence: f64) -> Option<Interval> {
    Ends::new(series, confidence)?.interval(series)
}

/// The same, where a series may end because of it.
pub fn settled_interval(series: &[f64], confidence: f64) -> Option<Interval> {
    Ends::new(series, confidence).filter(|ends| ends.is_settled())?.interval(series)
}

/// The same by ranks alone, so that its ends are values of the series.
pub fn ranked_interval(series: &[f64], confidence: f64) -> Option<Interval> {
    Ends::new(series, confidence).filter(|ends| matches!(ends, Ends::Rank { .. }))?.interval(series)
}

/// The same of all values, however alike neighbours are: of values whose signs about their median are coins of their own, such as the
/// differences of two equal things whose order was drawn anew for each. None with too few values.
pub(crate) fn interval_of_coins(values: &[f64], confidence: f64) -> Option<Interval> {
    let rank = repeated_rank(values.len(), confidence)?;
    Ends::Rank { rank, is_settled: true }.interval(values)
}

/// So many widths of the range beyond all of few differences the centre lies at most once in 4,000 where the differences are normal,
/// double exponential or of Student's distribution with 2 degrees of freedom, and once in 1,000 where they are uniform: 400,000
/// simulated sets of each number.
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
        // A level that lasts for half of the series is no median of many.
        let halves: Vec<f64> =
            (0..400).map(|at| f64::from(at / 200) + f64::from(at * 7919 % 211) / 1e4).collect();
        assert_eq!(settled_interval(&halves, 0.99), None);
    }

    /// Any other quantity with the same order excludes 0 where this one does.
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
