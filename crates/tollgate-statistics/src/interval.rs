use serde::{Deserialize, Serialize};

/// A closed interval, in the unit of its quantity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns the smallest interval around both.
    pub fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// Returns the intersection. The two must overlap.
    pub fn common(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// Returns the interval from the smallest to the largest value; `None` if there are none.
    pub fn range(values: &[f64]) -> Option<Self> {
        let low = values.iter().copied().min_by(f64::total_cmp)?;
        let high = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Self { low, high })
    }
}

/// Returns the confidence interval of the median, from the k-th smallest to the k-th largest sample: the sign test inverted. It
/// holds for independent samples of any distribution (Conover, *Practical Nonparametric Statistics*, 3rd ed., 1999, section 3.2).
/// `None` with too few samples for the confidence: 0.95 needs six.
pub fn median_interval(samples: &[f64], confidence: f64) -> Option<Interval> {
    let rank = sign_test_rank(samples.len(), confidence)?;
    let mut copy = samples.to_vec();
    let (_, &mut low, above) = copy.select_nth_unstable_by(rank - 1, f64::total_cmp);
    let from_low = samples.len() + 1 - 2 * rank;
    let high = match from_low.checked_sub(1) {
        Some(index) => *above.select_nth_unstable_by(index, f64::total_cmp).1,
        None => low,
    };
    Some(Interval { low, high })
}

/// Returns the largest k with P(B <= k - 1) <= (1 - confidence) / 2, where B is binomial with `n` and one half: the k-th smallest and
/// k-th largest of `n` samples are the narrowest interval of the median. At least 1; `None` if even 1 is too large.
pub fn sign_test_rank(n: usize, confidence: f64) -> Option<usize> {
    let tail = (1.0 - confidence) / 2.0;
    if n == 0 || tail.is_nan() || tail <= 0.0 {
        return None;
    }
    let mut terms = HalfBinomial::new(n);
    let mut below = 0.0;
    let mut rank = terms.first;
    while rank < n.div_ceil(2) {
        below += terms.next_term();
        if below > tail {
            break;
        }
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

/// Returns the largest k with P(B = k - 1) (n + 1) <= 1 - `confidence`, where B is binomial with `n` and one half. As `n` grows, the
/// probability that so few values are ever below the median is at most 1 - `confidence`. At least 1, or `None`.
pub fn repeated_rank(n: usize, confidence: f64) -> Option<usize> {
    let error = 1.0 - confidence;
    if n == 0 || error.is_nan() || error <= 0.0 {
        return None;
    }
    let mut terms = HalfBinomial::new(n);
    let first = terms.first;
    let excluded = (first..n.div_ceil(2)).take_while(|_| terms.next_term() * (n as f64 + 1.0) <= error);
    let rank = first + excluded.count();
    (rank > 0).then_some(rank)
}

/// P(B <= `most`), where B is binomial with `n` and one half.
pub fn half_binomial_at_most(n: usize, most: usize) -> f64 {
    let mut terms = HalfBinomial::new(n);
    let sum: f64 = (terms.first..=most.min(n)).map(|_| terms.next_term()).sum();
    sum.min(1.0)
}

/// P(B = i) for i = `first`, `first` + 1, …, each from its predecessor by the ratio of neighbouring binomial coefficients. All
/// terms are positive, so the error stays near the rounding of one term.
struct HalfBinomial {
    n: usize,
    /// 0, or for large `n` twenty standard deviations below the middle: the sum below that is less than 1e-80.
    first: usize,
    next: usize,
    term: f64,
}

impl HalfBinomial {
    /// Up to this `n`, 2^-n is a normal number.
    const EXACT: usize = 1000;

    fn new(n: usize) -> Self {
        if n <= Self::EXACT {
            return Self { n, first: 0, next: 0, term: 0.5_f64.powi(n as i32) };
        }
        let first = (n as f64 / 2.0 - 10.0 * (n as f64).sqrt()) as usize;
        let ln_choose = ln_factorial(n) - ln_factorial(first) - ln_factorial(n - first);
        let term = (ln_choose - n as f64 * std::f64::consts::LN_2).exp();
        Self { n, first, next: first, term }
    }

    fn next_term(&mut self) -> f64 {
        let term = self.term;
        let i = self.next;
        self.next += 1;
        self.term = if i < self.n { term * (self.n - i) as f64 / (i + 1) as f64 } else { 0.0 };
        term
    }
}

/// Natural logarithm of n! by Stirling's series, Abramowitz & Stegun 6.1.41; for n >= 100 its error is below rounding.
fn ln_factorial(n: usize) -> f64 {
    let x = n as f64;
    let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
    (x + 0.5) * x.ln() - x + half_ln_tau + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks for n = 5 to 25 as published tables have them, such as Conover's table A3 for p = 1/2.
    #[test]
    fn ranks_are_the_published_ones() {
        let at_95 = [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8];
        let at_99 = [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6];
        for (n, (rank_95, rank_99)) in (5..).zip(at_95.into_iter().zip(at_99)) {
            assert_eq!(sign_test_rank(n, 0.95).unwrap_or(0), rank_95, "n = {n}, 95 %");
            assert_eq!(sign_test_rank(n, 0.99).unwrap_or(0), rank_99, "n = {n}, 99 %");
        }
    }

    /// For large n the rank is within one of n/2 - z * sqrt(n)/2.
    #[test]
    fn ranks_of_large_n_follow_the_normal_limit() {
        for n in [999, 1000, 1001, 1002, 10_000, 123_457, 1_000_000] {
            for (confidence, z) in [(0.95, 1.959_964), (0.99, 2.575_829), (0.998, 3.090_232)] {
                let limit = (n as f64 + 1.0 - z * (n as f64).sqrt()) / 2.0;
                let rank = sign_test_rank(n, confidence).unwrap() as f64;
                assert!((rank - limit).abs() < 1.5, "n = {n}, {confidence}: {rank} and {limit}");
            }
        }
    }

    /// 2^-14 × 15, 2^-20 × 20 × 21 and 2^-23 × 253 × 24 are below 0.001; 2^-13 × 14 and 2^-22 × 231 × 23 are not.
    #[test]
    fn ranks_that_hold_at_all_looks_are_those_of_robbins() {
        let found = [13, 14, 20, 22, 23].map(|n| repeated_rank(n, 0.999));
        assert_eq!(found, [None, Some(1), Some(2), Some(2), Some(3)]);
        assert_eq!([repeated_rank(7, 0.95), repeated_rank(8, 0.95)], [None, Some(1)]);
        assert_eq!(
            (repeated_rank(0, 0.9), repeated_rank(50, 1.0), repeated_rank(50, f64::NAN)),
            (None, None, None)
        );
        for n in [160, 1000, 1001, 20_000, 100_000] {
            // z lies between 3.29, which is that of one look, and 5.
            let z = (n as f64 - 2.0 * repeated_rank(n, 0.999).unwrap() as f64) / (n as f64).sqrt();
            assert!((4.1..5.0).contains(&z), "{n}: {z}");
        }
    }

    #[test]
    fn both_ways_of_starting_the_binomial_agree() {
        for n in [1001, 1500, 2001] {
            let mut from_zero = HalfBinomial { n: n / 2, ..HalfBinomial::new(n / 2) };
            let direct: f64 = (0..=n / 4).map(|_| from_zero.next_term()).sum();
            assert!((half_binomial_at_most(n / 2, n / 4) - direct).abs() < 1e-12);
            assert!((half_binomial_at_most(n, n) - 1.0).abs() < 1e-9);
        }
        for n in [1001, 99_999, 999_999] {
            assert!((half_binomial_at_most(n, n / 2) - 0.5).abs() < 1e-7, "n = {n}");
        }
        assert_eq!(half_binomial_at_most(10, 2), 56.0 / 1024.0);
    }

    #[test]
    fn too_few_or_a_senseless_confidence_is_none() {
        assert_eq!(median_interval(&[], 0.95), None);
        assert_eq!(median_interval(&[1.0; 5], 0.95), None);
        assert_eq!(median_interval(&[1.0; 50], 1.0), None);
        assert_eq!(median_interval(&[1.0; 50], f64::NAN), None);
        assert_eq!(median_interval(&[3.0, 1.0, 2.0], -1.0), Some(Interval { low: 2.0, high: 2.0 }));
        assert_eq!(median_interval(&[1.0, 2.0], 0.0), Some(Interval { low: 1.0, high: 2.0 }));
        let six = [6.0, 1.0, 5.0, 2.0, 4.0, 3.0];
        assert_eq!(median_interval(&six, 0.95), Some(Interval { low: 1.0, high: 6.0 }));
    }
}
