//! Base-2 exponential histograms of scale 5, as the data model of OpenTelemetry defines them: bucket `i` holds samples above
//! `2^(i/32)` and not above `2^((i+1)/32)`. Quantiles of machines cannot be averaged, but counts add up: all histograms have the
//! same bounds. The error of a quantile of the sum is at most a bucket's width: 2.2 %, or half of that from its middle.

use serde::{Deserialize, Serialize};

/// Bounds differ by the factor `2^(2^-SCALE)`.
pub const SCALE: u32 = 5;
const PER_OCTAVE: f64 = 32.0;
/// Samples up to this, in their unit, are counted as zero.
pub const ZERO_THRESHOLD: f64 = 1.0 / 1_048_576.0;
/// Larger samples are counted in the bucket that ends here: 2^63 ns are 292 years.
const MOST: f64 = 9_223_372_036_854_775_808.0;

/// The counts of samples by bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Samples of zero or less: those below the loop overhead.
    pub zero: u64,
    /// The number of the first of `counts`.
    pub offset: i32,
    /// Samples by bucket, without empty ones at either end.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Counts samples in any order. NaN is not counted.
    pub fn of(samples: &[f64]) -> Self {
        let positive = || samples.iter().copied().filter(|&sample| sample > ZERO_THRESHOLD).map(bucket);
        let zero = samples.iter().filter(|&&sample| sample <= ZERO_THRESHOLD).count() as u64;
        let (Some(first), Some(last)) = (positive().min(), positive().max()) else {
            return Self { zero, ..Self::default() };
        };
        let mut counts = vec![0; (last - first) as usize + 1];
        for bucket in positive() {
            counts[(bucket - first) as usize] += 1;
        }
        Self { zero, offset: first, counts }
    }

    /// The number of samples in it.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(self.zero, |sum, count| sum.saturating_add(*count))
    }

    /// Whether [`Histogram::of`] could have made it.
    pub fn is_sound(&self) -> bool {
        let lowest = bucket(ZERO_THRESHOLD);
        let end = i64::from(self.offset) + self.counts.len() as i64 - 1;
        let ends_count =
            [self.counts.first(), self.counts.last()].iter().all(|end| end.is_some_and(|n| *n > 0));
        if self.counts.is_empty() {
            self.offset == 0
        } else {
            ends_count && self.offset >= lowest && end <= i64::from(bucket(MOST))
        }
    }
}

fn bucket(sample: f64) -> i32 {
    let exact = sample.min(MOST).log2() * PER_OCTAVE;
    // The upper bound belongs to the bucket: a power of two is the last of its octave.
    exact.ceil() as i32 - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As the query in docs/fleet-queries.md computes it: the middle of the bucket in which the sample of that rank is.
    fn quantile(histograms: &[Histogram], q: f64) -> f64 {
        let mut summed = std::collections::BTreeMap::<i32, u64>::new();
        for histogram in histograms {
            for (number, count) in (histogram.offset..).zip(&histogram.counts) {
                *summed.entry(number).or_default() += count;
            }
        }
        let all: u64 = histograms.iter().map(Histogram::count).sum();
        let mut upto: u64 = histograms.iter().map(|histogram| histogram.zero).sum();
        if upto as f64 >= q * all as f64 {
            return 0.0;
        }
        for (number, count) in summed {
            upto += count;
            if upto as f64 >= q * all as f64 {
                return ((f64::from(number) + 0.5) / PER_OCTAVE).exp2();
            }
        }
        unreachable!("the last bucket reaches all")
    }

    fn exact(machines: &[Vec<f64>], q: f64) -> f64 {
        let mut all: Vec<f64> = machines.concat();
        all.sort_unstable_by(f64::total_cmp);
        all[((q * all.len() as f64).ceil() as usize).max(1) - 1]
    }

    #[test]
    fn bounds_are_those_of_the_definition() {
        assert_eq!((bucket(1.0), bucket(2.0), bucket(4.0), bucket(0.5)), (-1, 31, 63, -33));
        assert_eq!((bucket(1.000_001), bucket(2.000_001)), (0, 32));
        for number in [-600, -1, 0, 1, 200, 2000] {
            let middle = ((f64::from(number) + 0.5) / PER_OCTAVE).exp2();
            assert_eq!(bucket(middle), number);
        }
    }

    #[test]
    fn samples_of_zero_and_below_are_counted_as_zero() {
        let histogram = Histogram::of(&[0.0, -3.5, f64::MIN_POSITIVE, 1.0, f64::NAN]);
        assert_eq!(histogram, Histogram { zero: 3, offset: -1, counts: vec![1] });
        assert_eq!(Histogram::of(&[-1.0]), Histogram { zero: 1, offset: 0, counts: Vec::new() });
        assert!(Histogram::of(&[f64::MAX, 1e-300]).is_sound());
        assert!(Histogram::of(&[f64::MAX, 1e-5]).counts.len() < 2700, "no sample makes it long");
    }

    fn samples() -> impl Strategy<Value = Vec<f64>> {
        let level = prop_oneof![-5.0..0.0, 1e-3..1e3, 50.0..52.0, 1e3..1e12];
        proptest::collection::vec(level, 1..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn quantiles_of_summed_histograms_are_within_2_2_percent(machines in proptest::collection::vec(samples(), 1..12)) {
            let histograms: Vec<Histogram> = machines.iter().map(|samples| Histogram::of(samples)).collect();
            for q in [0.5, 0.9, 0.99, 0.999] {
                let (found, truth) = (quantile(&histograms, q), exact(&machines, q));
                let close = (found / truth - 1.0).abs() <= 0.022;
                prop_assert!(close || (truth <= 0.0 && found == 0.0), "{q}: {found} for {truth}");
            }
        }

        #[test]
        fn every_sample_is_counted_once(samples in proptest::collection::vec(any::<f64>(), 0..200)) {
            let histogram = Histogram::of(&samples);
            let numbers = samples.iter().filter(|sample| !sample.is_nan()).count() as u64;
            prop_assert_eq!(histogram.count(), numbers);
            prop_assert!(histogram.is_sound());
        }
    }
}
