use crate::anytime::FEWEST;
use crate::interval::Interval;
use crate::series::cautious_number;

/// Returns the ratio of the sums of `other` and `base`, with an interval that holds at all looks together, asymptotically: no
/// interval of a mean is free of assumptions. It is the confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas,
/// "Time-uniform central limit theory and asymptotic confidence sequences" (Annals of Statistics 52, 2024), equation 8, for the
/// mean of other - ratio × base. Pairs that resemble their neighbours count as fewer. `None` without sums above zero.
pub fn ratio_of_totals(base: &[f64], other: &[f64], confidence: f64) -> Option<(f64, Option<Interval>)> {
    let number = base.len().min(other.len());
    let [of_base, of_other] = [base, other].map(|side| side[..number].iter().sum::<f64>());
    let ratio = of_other / of_base;
    if !(of_base > 0.0 && of_other > 0.0 && ratio.is_normal()) {
        return None;
    }
    let rest: Vec<f64> = base.iter().zip(other).map(|(base, other)| other - ratio * base).collect();
    let variance = rest.iter().map(|one| one * one).sum::<f64>() / number as f64;
    let worth = cautious_number(&rest);
    if worth < FEWEST as f64 {
        return Some((ratio, None));
    }
    let half = variance.sqrt() * half_width(worth, 1.0 - confidence) / (of_other / number as f64);
    let interval = Interval { low: ratio * (-half).exp(), high: ratio * half.exp() };
    Some((ratio, Some(interval).filter(|ends| ends.low.is_normal() && ends.high.is_finite())))
}

/// Half of the width of the interval of the mean of `number` values with variance 1.
fn half_width(number: f64, error: f64) -> f64 {
    /// The number of values for which the interval is narrowest.
    const USUAL: f64 = 100.0;
    let least = -2.0 * error.ln();
    let scale = (least + least.ln() + 1.0) / USUAL;
    let grown = number * scale + 1.0;
    (2.0 * grown / (number * number * scale) * (grown.sqrt() / error).ln()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_knows_what_a_median_does_not() {
        let noise = |at: usize| 1.0 + (at * 7919 % 211) as f64 / 1e5;
        let base: Vec<f64> = (0..400).map(noise).collect();
        let slow = |at: usize| if (at * 7).is_multiple_of(5) { 2.72 } else { 1.0 };
        let other: Vec<f64> = (0..400).map(|at| noise(at + 1000) * slow(at)).collect();
        let (ratio, interval) = ratio_of_totals(&base, &other, 0.95).unwrap();
        assert!((ratio - 1.344).abs() < 0.002, "{ratio}");
        let Interval { low, high } = interval.unwrap();
        assert!(low > 1.2 && high < 1.5 && low < ratio && ratio < high, "{low} {high}");
    }

    /// 1.7 times the interval of a fixed number, which is 1.96 / 10 at 100.
    #[test]
    fn the_width_is_the_published_one() {
        let times = half_width(100.0, 0.05) / 0.195_996;
        assert!((1.4..1.7).contains(&times), "{times}");
        assert!(half_width(400.0, 0.05) < 0.6 * half_width(100.0, 0.05));
    }

    #[test]
    fn hopeless_input_is_none() {
        assert_eq!(ratio_of_totals(&[], &[], 0.95), None);
        assert_eq!(ratio_of_totals(&[0.0; 9], &[1.0; 9], 0.95), None);
        assert_eq!(ratio_of_totals(&[1.0; 3], &[2.0; 3], 0.95), Some((2.0, None)));
        assert_eq!(ratio_of_totals(&[f64::NAN; 9], &[2.0; 9], 0.95), None);
    }
}
