//! Whether values in the order of time climb or fall, by ranks.

use super::normal::normal_quantile;
use super::order::median;

/// How much the values climb (or fall, negative) from one to the next where they do so clearly:
/// the slope of Theil and Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau" (1968),
/// if the test of Mann, "Nonparametric Tests Against Trend" (1945) rejects "no trend" at `confidence`.
///
/// Levels that jump once in the middle are no trend to this test as long as the values are few.
pub(crate) fn significant_slope(values: &[f64], confidence: f64) -> Option<f64> {
    let thinned = thin(values);
    let values = &thinned.values;
    let score = pairs(values).map(|(_, earlier, later)| sign(later - earlier)).sum::<i64>();
    let tail = (1.0 - confidence) / 2.0;
    if score == 0 || tail_of_score(values.len(), score.unsigned_abs()) > tail {
        return None;
    }
    let slopes: Vec<f64> =
        pairs(values).map(|(steps, earlier, later)| (later - earlier) / steps as f64).collect();
    median(&slopes).map(|slope| slope / thinned.each as f64)
}

/// Medians of equal stretches, so that the number of pairs stays bounded.
struct Thinned {
    values: Vec<f64>,
    /// How many values a stretch has.
    each: usize,
}

fn thin(values: &[f64]) -> Thinned {
    const MOST: usize = 128;
    let each = values.len().div_ceil(MOST).max(1);
    Thinned { values: values.chunks(each).filter_map(median).collect(), each }
}

/// Every earlier with every later value, and how many steps lie between.
fn pairs(values: &[f64]) -> impl Iterator<Item = (usize, f64, f64)> + '_ {
    (0..values.len()).flat_map(move |i| (i + 1..values.len()).map(move |j| (j - i, values[i], values[j])))
}

fn sign(difference: f64) -> i64 {
    i64::from(difference > 0.0) - i64::from(difference < 0.0)
}

/// P(S >= `score`) without a trend, S being later-above-earlier pairs less later-below-earlier pairs of
/// `n` values: exactly, by counting permutations by their inversions (Kendall, *Rank Correlation Methods*,
/// chapter 5), or for many values by the normal limit with the variance n (n - 1) (2 n + 5) / 18.
fn tail_of_score(n: usize, score: u64) -> f64 {
    const EXACT: usize = 40;
    let all = n as u64 * (n as u64).saturating_sub(1) / 2;
    if n > EXACT {
        let n = n as f64;
        let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        return upper_tail((score as f64 - 1.0) / deviation);
    }
    // S = pairs - 2 * inversions, so S >= score where inversions <= (pairs - score) / 2.
    let most_inversions = all.saturating_sub(score) / 2;
    inversions(n).iter().take(most_inversions as usize + 1).sum()
}

/// The probability of each number of inversions in a random permutation of `n`.
fn inversions(n: usize) -> Vec<f64> {
    let mut chances = vec![1.0];
    for i in 2..=n {
        let mut longer = vec![0.0; chances.len() + i - 1];
        for (count, chance) in chances.iter().enumerate() {
            for more in 0..i {
                longer[count + more] += chance / i as f64;
            }
        }
        chances = longer;
    }
    chances
}

/// P(Z >= z), by bisection of the quantile function.
fn upper_tail(z: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if -normal_quantile(middle) > z { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two-sided critical values of S: Kendall's table, n = 4 to 10 (one-sided tails as printed there).
    #[test]
    fn tails_are_the_published_ones() {
        for (n, score, tail) in
            [(4, 6, 0.042), (5, 8, 0.042), (6, 13, 0.0083), (7, 15, 0.015), (8, 20, 0.0071), (10, 27, 0.0083)]
        {
            assert!(
                (tail_of_score(n, score) - tail).abs() < 6e-4,
                "{n}, {score}: {}",
                tail_of_score(n, score)
            );
        }
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6);
    }

    #[test]
    fn a_climb_is_found_and_a_jump_is_not() {
        let climb: Vec<f64> = (0..12).map(|i| 100.0 + 2.0 * f64::from(i) + f64::from(i * 7 % 3)).collect();
        assert!((significant_slope(&climb, 0.99).unwrap() - 2.0).abs() < 0.3);
        let fall: Vec<f64> = climb.iter().rev().copied().collect();
        assert!(significant_slope(&fall, 0.99).unwrap() < -1.7);
        assert_eq!(significant_slope(&[164.0, 164.0, 164.0, 164.0, 215.0, 215.0, 215.0, 215.0], 0.99), None);
        assert_eq!(significant_slope(&[1.0; 16], 0.99), None);
        assert_eq!(significant_slope(&[], 0.99), None);
        assert_eq!(significant_slope(&[1.0, 2.0, 3.0], 0.99), None);
        let long: Vec<f64> = (0..100_000).map(f64::from).collect();
        assert!((significant_slope(&long, 0.99).unwrap() - 1.0).abs() < 1e-6);
    }
}
