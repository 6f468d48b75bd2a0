use crate::order::median;

/// Returns the slope per value: the median of the slopes of all pairs, after Theil (1950) and Sen, "Estimates of the Regression
/// Coefficient Based on Kendall's Tau" (1968). 0 for fewer than two.
pub fn slope(values: &[f64]) -> f64 {
    /// More values are reduced to medians of equal stretches, which bounds the number of pairs.
    const MOST: usize = 128;
    let each = values.len().div_ceil(MOST).max(1);
    let stretches: Vec<f64> = values.chunks(each).filter_map(median).collect();
    let later = |i: usize| stretches[i + 1..].iter().zip(1..);
    let of_pairs = |i: usize| later(i).map(move |(value, steps)| (i, value, steps));
    let slopes = (0..stretches.len())
        .flat_map(of_pairs)
        .map(|(i, value, steps)| (value - stretches[i]) / f64::from(steps));
    median(&slopes.collect::<Vec<f64>>()).unwrap_or(0.0) / each as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_climb_is_measured_in_spite_of_an_outlier() {
        let mut climb: Vec<f64> =
            (0..12).map(|i| 100.0 + 2.0 * f64::from(i) + 0.1 * f64::from(i * 7 % 3)).collect();
        climb[5] = 1e9;
        assert!((slope(&climb) - 2.0).abs() < 0.1);
        climb.reverse();
        assert!((slope(&climb) + 2.0).abs() < 0.1);
    }

    #[test]
    fn constant_or_few_values_have_no_slope() {
        assert_eq!(slope(&[]), 0.0);
        assert_eq!(slope(&[3.0]), 0.0);
        assert_eq!(slope(&[1.0; 16]), 0.0);
        assert_eq!(slope(&[1.0, 3.0]), 2.0);
    }

    #[test]
    fn many_values_are_taken_in_stretches() {
        let long: Vec<f64> = (0..1_000_000).map(f64::from).collect();
        assert!((slope(&long) - 1.0).abs() < 1e-4);
    }
}
