use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::normal::normal_quantile;
use crate::order::sorted;
use crate::series::independent_number;

/// A location shift, in the unit of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// The median of all differences between two samples, one of each group.
    pub estimate: f64,
    /// The confidence interval of the shift; `None` with too few samples.
    pub interval: Option<Interval>,
}

/// Returns the shift from `a` to `b`: the estimate of Hodges & Lehmann, "Estimates of Location Based on Rank Tests" (1963), with the
/// interval of the test of Mann & Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other"
/// (1947), as in Conover, *Practical Nonparametric Statistics*, section 5.4. It assumes that the groups differ by a shift. Ranks are
/// those of the independent samples, since neighbours in time may be alike. `None` if either is empty, or a difference is not finite.
pub fn shift(a: &[f64], b: &[f64], confidence: f64) -> Option<Shift> {
    let differences = Differences::new(sorted(a), sorted(b))?;
    let count = differences.count();
    let estimate = differences.middle();
    let interval = rank_of_series(a, b, confidence)
        .map(|rank| Interval { low: differences.nth(rank - 1), high: differences.nth(count - rank) });
    Some(Shift { estimate, interval })
}

/// Returns the pseudomedian: the median of the means of any two samples (Hodges & Lehmann 1963). It varies hardly more than the
/// mean if samples are normal, and little if some lie far out. `None` if empty, or if a sum is not finite.
pub fn pseudomedian(samples: &[f64]) -> Option<f64> {
    let negated: Vec<f64> = samples.iter().map(|sample| -sample).collect();
    let sums = Differences::new(sorted(&negated), sorted(samples))?;
    Some(sums.middle() / 2.0)
}

/// The rank for groups whose samples resemble their neighbours. The variance of U over the number of pairs is about (1 / m + 1 /
/// n) / 12, so the ranks of the effective numbers are stretched to all pairs.
fn rank_of_series(a: &[f64], b: &[f64], confidence: f64) -> Option<u64> {
    let independent = mann_whitney_rank(a.len(), b.len(), confidence)?;
    let [m, n] = [a, b].map(independent_number);
    let rank = mann_whitney_rank(m as usize, n as usize, confidence)?;
    let all = a.len() as f64 * b.len() as f64;
    Some(((rank as f64 * all / (m * n)) as u64).clamp(1, independent))
}

/// Returns the share of pairs in which the sample of `b` is not above that of `a`, with ties counting half: the Mann-Whitney U
/// over its largest value. 0 if all of `b` is above all of `a`; `None` if either is empty.
pub fn share_not_above(a: &[f64], b: &[f64]) -> Option<f64> {
    let differences = Differences::new(sorted(a), sorted(b))?;
    let at_most = differences.at_most(0.0);
    let below = differences.at_most(-f64::from_bits(1));
    Some((at_most + below) as f64 / (2 * differences.count()) as f64)
}

/// All differences b - a, ordered but never stored: there may be 10^10 of them.
struct Differences {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Differences {
    /// Takes sorted groups; `None` if one is empty or a difference is not finite.
    fn new(a: Vec<f64>, b: Vec<f64>) -> Option<Self> {
        let smallest = b.first()? - a.last()?;
        let largest = b.last()? - a.first()?;
        (smallest.is_finite() && largest.is_finite()).then_some(Self { a, b })
    }

    fn count(&self) -> u64 {
        self.a.len() as u64 * self.b.len() as u64
    }

    fn middle(&self) -> f64 {
        let count = self.count();
        self.nth((count - 1) / 2).midpoint(self.nth(count / 2))
    }

    /// Counts the differences of at most `bound`. As b grows, the first a that is near enough never moves back.
    fn at_most(&self, bound: f64) -> u64 {
        let mut first = 0;
        let mut count = 0;
        for b in &self.b {
            while first < self.a.len() && b - self.a[first] > bound {
                first += 1;
            }
            count += (self.a.len() - first) as u64;
        }
        count
    }

    /// The difference of this rank, from 0, by bisection over the representable numbers: at most 64 counts.
    fn nth(&self, rank: u64) -> f64 {
        let mut low = to_ordered(self.b[0] - self.a[self.a.len() - 1]);
        let mut high = to_ordered(self.b[self.b.len() - 1] - self.a[0]);
        while low < high {
            let middle = low.midpoint(high);
            if self.at_most(from_ordered(middle)) > rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        from_ordered(low) + 0.0 // Never -0.
    }
}

const SIGN: u64 = 1 << 63;

/// An integer that orders as the number does.
pub fn to_ordered(x: f64) -> u64 {
    let bits = (x + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

/// The inverse of [`to_ordered`].
pub fn from_ordered(ordered: u64) -> f64 {
    f64::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered & !SIGN })
}

/// The largest k with P(U <= k - 1) <= (1 - confidence) / 2, as in [`sign_test_rank`](crate::sign_test_rank), or `None`.
fn mann_whitney_rank(m: usize, n: usize, confidence: f64) -> Option<u64> {
    let tail = (1.0 - confidence) / 2.0;
    if m == 0 || n == 0 || tail.is_nan() || tail <= 0.0 {
        return None;
    }
    let half = (m as u64 * n as u64).div_ceil(2);
    let rank = match arrangements_by_u(m, n) {
        Some(counts) => exact_rank(&counts, tail),
        None => normal_rank(m, n, tail)?,
    };
    let rank = rank.min(half);
    (rank > 0).then_some(rank)
}

fn exact_rank(counts: &[i128], tail: f64) -> u64 {
    let all: i128 = counts.iter().sum();
    let allowed = tail * all as f64;
    let mut below = 0_i128;
    let fits = counts.iter().take_while(|&&count| {
        below += count;
        below as f64 <= allowed
    });
    fits.count() as u64
}

/// U is nearly normal, with the variance m n (m + n + 1) / 12; the half is the continuity correction. `None` for a smaller group.
fn normal_rank(m: usize, n: usize, tail: f64) -> Option<u64> {
    const FEWEST: usize = 8;
    if m.min(n) < FEWEST {
        return None;
    }
    let (m, n) = (m as f64, n as f64);
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    Some((m * n / 2.0 + 0.5 + normal_quantile(tail) * deviation).max(0.0) as u64)
}

/// The number of arrangements of `m` and `n` samples for each U from 0 to m n: coefficients of the Gaussian binomial, the product over i = 1 …
/// m of (1 - q^(n + i)) / (1 - q^i) (Mann & Whitney 1947; Andrews, *The Theory of Partitions*, 3.2). `None` if too large or too many.
fn arrangements_by_u(m: usize, n: usize) -> Option<Vec<i128>> {
    const MOST_WORK: usize = 4_000_000;
    let (few, many) = (m.min(n), m.max(n));
    let largest = few.checked_mul(many)?;
    if largest.checked_mul(few)? > MOST_WORK || log2_choose(few + many, few) > 125.0 {
        return None;
    }
    let mut counts = vec![0_i128; largest + 1];
    counts[0] = 1;
    for i in 1..=few {
        for u in (many + i..=largest).rev() {
            counts[u] -= counts[u - many - i];
        }
        for u in i..=largest {
            counts[u] += counts[u - i];
        }
    }
    Some(counts)
}

fn log2_choose(n: usize, k: usize) -> f64 {
    (1..=k).map(|i| ((n - k + i) as f64 / i as f64).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of U, two-sided at 5 % and 1 %: Conover's table A7.
    #[test]
    fn critical_values_are_the_published_ones() {
        let at_5 = [
            (4, 4, 0),
            (5, 5, 2),
            (6, 6, 5),
            (7, 7, 8),
            (8, 8, 13),
            (9, 9, 17),
            (10, 10, 23),
            (12, 12, 37),
            (16, 16, 75),
            (20, 20, 127),
            (3, 5, 0),
            (4, 10, 5),
            (5, 8, 6),
            (7, 16, 26),
            (10, 20, 55),
        ];
        let at_1 = [(5, 5, 0), (6, 6, 2), (7, 7, 4), (8, 8, 7), (10, 10, 16), (16, 16, 60), (20, 20, 105)];
        for (table, confidence) in [(at_5.as_slice(), 0.95), (at_1.as_slice(), 0.99)] {
            for &(m, n, critical) in table {
                assert_eq!(mann_whitney_rank(m, n, confidence), Some(critical + 1), "{m}, {n}, {confidence}");
                assert_eq!(mann_whitney_rank(n, m, confidence), Some(critical + 1), "{n}, {m}, {confidence}");
            }
        }
        assert_eq!(mann_whitney_rank(3, 3, 0.95), None);
        assert_eq!(mann_whitney_rank(4, 4, 0.99), None);
    }

    #[test]
    fn arrangements_are_counted_once_each() {
        assert_eq!(arrangements_by_u(2, 2), Some(vec![1, 1, 2, 1, 1]));
        let sum: i128 = arrangements_by_u(16, 16).unwrap().iter().sum();
        assert_eq!(sum, 601_080_390);
        let counts = arrangements_by_u(60, 60).unwrap();
        assert!(counts.iter().all(|&count| count > 0) && counts.iter().eq(counts.iter().rev()));
    }

    #[test]
    fn the_normal_limit_meets_the_exact_distribution() {
        for (m, n) in [(30, 30), (12, 60), (60, 60)] {
            for confidence in [0.95, 0.99, 0.998] {
                let tail = (1.0 - confidence) / 2.0;
                let exact = exact_rank(&arrangements_by_u(m, n).unwrap(), tail) as f64;
                let normal = normal_rank(m, n, tail).unwrap() as f64;
                assert!((exact - normal).abs() <= 0.01 * (m * n) as f64, "{m}, {n}: {exact} and {normal}");
            }
        }
    }

    #[test]
    fn the_interval_is_that_of_the_written_out_differences() {
        let a = [3.0, 1.5, 9.0, 4.0, 2.5, 7.5, 1.0];
        let b = [13.0, 2.5, 10.0, 8.0, 8.5, 11.0];
        let mut differences: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
        differences.sort_unstable_by(f64::total_cmp);
        let found = shift(&a, &b, 0.95).unwrap();
        assert_eq!(found.estimate, differences[20].midpoint(differences[21]));
        // The table has 6 for U of 6 and 7 at 5 %, so the interval has the 7th from either end.
        assert_eq!(found.interval, Some(Interval { low: differences[6], high: differences[35] }));
        let back = shift(&b, &a, 0.95).unwrap();
        assert_eq!(back.interval, Some(Interval { low: -differences[35], high: -differences[6] }));
    }

    #[test]
    fn the_pseudomedian_is_the_middle_of_the_means_of_two() {
        assert_eq!(pseudomedian(&[1.0, 2.0, 3.0, 4.0]), Some(2.5));
        assert_eq!(pseudomedian(&[5.0]), Some(5.0));
        // Each of three with itself once and with another twice: 0, 0.5, 0.5, 1, 5, 5, 5.5, 5.5, 10.
        assert_eq!(pseudomedian(&[0.0, 10.0, 1.0]), Some(5.0));
        assert_eq!((pseudomedian(&[]), pseudomedian(&[f64::NAN])), (None, None));
    }

    #[test]
    fn separation_counts_pairs() {
        assert_eq!(share_not_above(&[1.0, 2.0], &[3.0, 4.0]), Some(0.0));
        assert_eq!(share_not_above(&[3.0, 4.0], &[1.0, 2.0]), Some(1.0));
        assert_eq!(share_not_above(&[1.0, 3.0], &[2.0, 3.0]), Some(0.375));
        assert_eq!(share_not_above(&[], &[1.0]), None);
    }

    #[test]
    fn hopeless_input_is_none() {
        assert_eq!(shift(&[], &[1.0], 0.95), None);
        assert_eq!(shift(&[f64::NAN], &[1.0], 0.95), None);
        assert_eq!(shift(&[-f64::MAX], &[f64::MAX], 0.95), None);
        assert_eq!(shift(&[0.0], &[-0.0], 0.95), Some(Shift { estimate: 0.0, interval: None }));
        assert_eq!(
            shift(&[1.0; 3], &[1.0; 5000], 0.99).unwrap().interval,
            Some(Interval { low: 0.0, high: 0.0 })
        );
    }

    #[test]
    fn many_samples_are_bisected() {
        let a: Vec<f64> = (0..20_000).map(|i| f64::from(i * 7919 % 20_011)).collect();
        let b: Vec<f64> = a.iter().map(|x| x + 5.0).collect();
        let found = shift(&a, &b, 0.95).unwrap();
        assert_eq!(found.estimate, 5.0);
        assert!(found.interval.unwrap().contains(5.0));
    }
}
