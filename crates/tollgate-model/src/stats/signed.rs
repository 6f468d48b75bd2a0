//! The centre of differences between pairs, by signed ranks.

use super::correlation::centred_ranks;
use super::interval::Interval;
use super::normal::normal_quantile;
use super::order::{median, sorted};
use super::series::shown_autocorrelation;
use super::shift::{from_ordered, to_ordered};

/// Fewer pairs have no interval.
pub(crate) const FEWEST_PAIRS: usize = 6;

/// The centre of differences between pairs, in their unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Centre {
    /// The median of the means of any two differences, each with itself too.
    pub(crate) estimate: f64,
    /// Its confidence interval; None with fewer than six pairs.
    pub(crate) interval: Option<Interval>,
}

/// The centre of the differences of pairs in the order of time, each with one value or several: the estimate of Hodges & Lehmann
/// (1963) with the interval of Wilcoxon's signed-rank test, as in Conover, *Practical Nonparametric Statistics*, section 5.7.
///
/// It assumes that differences lie symmetrically about their centre. Where the two of a pair are equal things in an order that is
/// drawn, they do whatever the distribution of either: exchanging the two changes the sign alone.
///
/// Values of one pair need not be independent: the variance of the test's statistic is that of the pairs' sums of signed ranks
/// (Rosner, Glynn & Lee, "The Wilcoxon Signed Rank Test for Paired Comparisons of Clustered Data", Biometrics 62, 2006), with a
/// quantile of Student's distribution, as it is estimated from few pairs. It is never taken below that of independent values, and
/// is larger where neighbouring pairs resemble each other beyond chance, see [`shown_autocorrelation`].
///
/// Values too few for the confidence, of at least six pairs, have the range of the pairs' medians, widened on either side by
/// [`beyond`] of its width.
///
/// None when empty, or when a value is not a finite number.
pub(crate) fn centre(pairs: &[Vec<f64>], confidence: f64) -> Option<Centre> {
    let values = pairs.concat();
    let means = Means::new(sorted(&values))?;
    let count = means.count();
    let lower = means.nth((count - 1) / 2);
    let estimate = middle(lower, if count % 2 == 1 { lower } else { means.nth(count / 2) });
    if pairs.len() < FEWEST_PAIRS {
        return Some(Centre { estimate, interval: None });
    }
    let medians: Vec<f64> = pairs.iter().filter_map(|pair| median(pair)).collect();
    let times = times_independent(pairs, &values, estimate, confidence) * shown_autocorrelation(&medians);
    let interval = match signed_rank(values.len(), confidence, times) {
        Some(rank) => Interval { low: means.nth(rank - 1), high: means.nth(count - rank) },
        None => {
            let Interval { low, high } = Interval::range(&medians)?;
            let more = beyond(medians.len()) * (high - low);
            Interval { low: low - more, high: high + more }
        }
    };
    let is_finite = interval.low.is_finite() && interval.high.is_finite();
    // The centre of all values need not be within the medians of pairs.
    let interval = interval.hull(Interval { low: estimate, high: estimate });
    Some(Centre { estimate, interval: is_finite.then_some(interval) })
}

/// By how much the variance of the statistic exceeds that of independent values, with what an estimate of so few pairs needs
/// more; at least 1. Pairs of one value each are independent.
fn times_independent(pairs: &[Vec<f64>], values: &[f64], estimate: f64, confidence: f64) -> f64 {
    if values.len() == pairs.len() {
        return 1.0;
    }
    let sizes: Vec<f64> = values.iter().map(|value| (value - estimate).abs()).collect();
    let middle = (sizes.len() as f64 + 1.0) / 2.0;
    let ranks = centred_ranks(&sizes);
    let scores: Vec<f64> =
        values.iter().zip(ranks).map(|(value, rank)| (rank + middle) * sign(value - estimate)).collect();
    let (mut of_pairs, mut rest) = (0.0, scores.as_slice());
    for pair in pairs {
        let (own, others) = rest.split_at(pair.len());
        of_pairs += own.iter().sum::<f64>().powi(2);
        rest = others;
    }
    let independent: f64 = scores.iter().map(|score| score * score).sum();
    let freedom = pairs.len() as f64 - 1.0;
    if independent == 0.0 || freedom < 1.0 {
        return 1.0;
    }
    let z = normal_quantile(0.5 + confidence / 2.0);
    let times = of_pairs / independent * pairs.len() as f64 / freedom * (student(z, freedom) / z).powi(2);
    if times.is_finite() { times.max(1.0) } else { 1.0 }
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// The quantile of Student's distribution of so many degrees of freedom at the level of the normal quantile `z`, by the inverse of
/// Wallace's approximation (1959).
fn student(z: f64, freedom: f64) -> f64 {
    let scaled = z * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * (scaled * scaled / freedom).exp_m1()).sqrt()
}

/// So many widths of the range beyond all of few differences the centre lies at most once in 4,000 where the differences are normal,
/// double exponential or of Student's distribution with 2 degrees of freedom, and once in 1,000 where they are uniform: 400,000
/// simulated sets of each number. Ranks alone reach that with 13.
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

/// The k such that from the k-th smallest to the k-th largest mean of two of `n` differences is the narrowest interval at
/// `confidence`, where the differences vary as much as `n` / `time` independent ones. At least 1; None where even 1 is too much.
fn signed_rank(n: usize, confidence: f64, time: f64) -> Option<u64> {
    let tail = (1.0 - confidence) / 2.0;
    if n == 0 || tail.is_nan() || tail <= 0.0 {
        return None;
    }
    let independent = if n <= EXACT { exact_rank(n, tail) } else { normal_rank(n, tail, 1.0) };
    let independent = independent.filter(|rank| *rank > 0)?;
    if time <= 1.0 {
        return Some(independent);
    }
    normal_rank(n, tail, time).filter(|rank| *rank > 0).map(|rank| rank.min(independent))
}

/// Up to here the distribution is counted out.
const EXACT: usize = 50;

/// The sums of all subsets of the ranks 1 to n, each as likely: W is at most k - 1 in the tail.
fn exact_rank(n: usize, tail: f64) -> Option<u64> {
    let largest = n * (n + 1) / 2;
    let mut shares = vec![0.0; largest + 1];
    shares[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=largest).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = 0.5 * (shares[sum] + with);
        }
    }
    let mut below = 0.0;
    let fits = shares.iter().take(largest.div_ceil(2)).take_while(|share| {
        below += **share;
        below <= tail
    });
    Some(fits.count() as u64)
}

/// W is nearly normal, with the variance n (n + 1) (2 n + 1) / 24; a half is the correction for continuity.
fn normal_rank(n: usize, tail: f64, time: f64) -> Option<u64> {
    let n = n as f64;
    let deviation = (time * n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    let rank = n * (n + 1.0) / 4.0 + 0.5 + normal_quantile(tail) * deviation;
    rank.is_finite().then_some(rank.max(0.0) as u64)
}

/// The means of any two values, each with itself too (Walsh averages): ordered but never written out.
struct Means {
    sorted: Vec<f64>,
}

impl Means {
    /// None when empty or when a value is not finite.
    fn new(sorted: Vec<f64>) -> Option<Self> {
        let is_finite = sorted.first()?.is_finite() && sorted.last()?.is_finite();
        is_finite.then_some(Self { sorted })
    }

    fn count(&self) -> u64 {
        let n = self.sorted.len() as u64;
        n * (n + 1) / 2
    }

    /// How many are at most `bound`. As the one grows, the last other that is small enough never moves up.
    fn at_most(&self, bound: f64) -> u64 {
        let mut end = self.sorted.len();
        let mut count = 0;
        for (at, one) in self.sorted.iter().enumerate() {
            while end > at && middle(*one, self.sorted[end - 1]) > bound {
                end -= 1;
            }
            if end <= at {
                break;
            }
            count += (end - at) as u64;
        }
        count
    }

    /// The mean of this rank from 0, by bisection over the representable numbers: at most 64 counts.
    fn nth(&self, rank: u64) -> f64 {
        let mut low = to_ordered(self.sorted[0]);
        let mut high = to_ordered(self.sorted[self.sorted.len() - 1]);
        while low < high {
            let between = low.midpoint(high);
            if self.at_most(from_ordered(between)) > rank {
                high = between;
            } else {
                low = between + 1;
            }
        }
        from_ordered(low) + 0.0 // Never -0.
    }
}

fn middle(one: f64, other: f64) -> f64 {
    0.5 * one + 0.5 * other
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The centre of pairs of one value each.
    fn centre(differences: &[f64], confidence: f64) -> Option<Centre> {
        let pairs: Vec<Vec<f64>> = differences.iter().map(|one| vec![*one]).collect();
        super::centre(&pairs, confidence)
    }

    #[test]
    fn values_of_a_pair_count_as_what_they_tell() {
        let width = |pairs: &[Vec<f64>]| {
            let Interval { low, high } = super::centre(pairs, 0.999).unwrap().interval.unwrap();
            high - low
        };
        let noise = |at: usize| (at * 7919 % 211) as f64;
        let apart: Vec<Vec<f64>> =
            (0..30).map(|pair| (0..8).map(|at| noise(8 * pair + at)).collect()).collect();
        let alike: Vec<Vec<f64>> =
            (0..30).map(|pair| (0..8).map(|at| noise(8 * pair) + 0.01 * noise(at)).collect()).collect();
        let once: Vec<Vec<f64>> = (0..30).map(|pair| vec![noise(8 * pair)]).collect();
        assert!(width(&apart) < 0.5 * width(&once), "{} {}", width(&apart), width(&once));
        assert!(width(&alike) > 0.9 * width(&once), "{} {}", width(&alike), width(&once));
    }

    /// Tables of Student's distribution, two-sided at 5 %, 1 % and 0.1 %.
    #[test]
    fn quantiles_of_student_are_the_published_ones() {
        for (freedom, level, quantile) in
            [(5.0, 0.05, 2.571), (5.0, 0.01, 4.032), (20.0, 0.001, 3.850), (100.0, 0.01, 2.626)]
        {
            let found = student(normal_quantile(1.0 - level / 2.0), freedom);
            assert!((found / quantile - 1.0).abs() < 0.02, "{freedom} {level}: {found}");
        }
    }

    /// Quantiles of W, one-sided at 2.5 % and 0.5 %: Conover's table A12 and every textbook's critical values, plus one.
    #[test]
    fn ranks_are_the_published_ones() {
        let at_95 =
            [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89), (30, 137)];
        let at_99 = [(8, 0), (9, 1), (10, 3), (12, 7), (15, 15), (20, 37), (25, 68), (30, 109)];
        for (table, confidence) in [(at_95.as_slice(), 0.95), (at_99.as_slice(), 0.99)] {
            for &(n, critical) in table {
                assert_eq!(signed_rank(n, confidence, 1.0), Some(critical + 1), "{n}, {confidence}");
            }
        }
        assert_eq!(signed_rank(5, 0.95, 1.0), None);
        assert_eq!(signed_rank(12, 0.99975, 1.0), None);
        assert_eq!(signed_rank(13, 0.99975, 1.0), Some(1));
    }

    #[test]
    fn the_normal_limit_meets_the_exact_distribution() {
        for confidence in [0.95, 0.99, 0.99975] {
            let tail = (1.0 - confidence) / 2.0;
            let [exact, normal] = [exact_rank(50, tail), normal_rank(50, tail, 1.0)].map(Option::unwrap);
            // The limit has the heavier tails.
            assert!(normal <= exact && exact - normal <= 13, "{confidence}: {exact} and {normal}");
        }
    }

    #[test]
    fn the_centre_is_that_of_the_written_out_means() {
        let differences = [3.0, -1.5, 9.0, 4.0, 2.5, 7.5, 1.0];
        let mut means = Vec::new();
        for (at, one) in differences.iter().enumerate() {
            means.extend(differences[at..].iter().map(|other| 0.5 * (one + other)));
        }
        means.sort_by(f64::total_cmp);
        let found = centre(&differences, 0.95).unwrap();
        assert_eq!(found.estimate, 0.5 * (means[13] + means[14]));
        // Table: W of 7 at 5 % is 2, so the 3rd from either end.
        assert_eq!(found.interval, Some(Interval { low: means[2], high: means[25] }));
        // The smallest errors are beyond 7 pairs: their range from -1.5 to 9, and 0.6 of it more.
        let Interval { low, high } = centre(&differences, 0.999).unwrap().interval.unwrap();
        assert!((low + 7.8).abs() < 1e-9 && (high - 15.3).abs() < 1e-9, "{low} {high}");
        assert_eq!(centre(&differences[..5], 0.95).unwrap().interval, None);
    }

    #[test]
    fn hopeless_input_is_none() {
        assert_eq!(centre(&[], 0.95), None);
        assert_eq!(centre(&[f64::NAN, 1.0], 0.95), None);
        assert_eq!(centre(&[f64::INFINITY; 9], 0.95), None);
        assert_eq!(centre(&[1.0; 9], f64::NAN).unwrap().interval, Some(Interval { low: 1.0, high: 1.0 }));
        let huge = [f64::MAX, -f64::MAX, f64::MAX, f64::MAX, -f64::MAX, f64::MAX, 0.0];
        assert_eq!(centre(&huge, 0.999).unwrap().interval, None);
        assert_eq!(centre(&[0.25; 3000], 0.999).unwrap().interval, Some(Interval { low: 0.25, high: 0.25 }));
    }

    #[test]
    fn only_neighbours_that_resemble_each_other_widen() {
        let apart: Vec<f64> = (0..200).map(|at| f64::from(at * 7919 % 211)).collect();
        assert_eq!(shown_autocorrelation(&apart), 1.0);
        let steps: Vec<f64> = (0..200).map(|at| f64::from(at / 20 * 7919 % 211)).collect();
        let time = shown_autocorrelation(&steps);
        assert!((10.0..60.0).contains(&time), "{time}");
        assert_eq!(shown_autocorrelation(&steps[..19]), 1.0);
        assert_eq!(shown_autocorrelation(&[1.0; 50]), 1.0);
        let width = |values: &[f64]| {
            let Interval { low, high } = centre(values, 0.99).unwrap().interval.unwrap();
            high - low
        };
        assert!(width(&steps) > 2.0 * width(&apart), "{} {}", width(&steps), width(&apart));
    }
}
