//! The median and other quantiles. NaN sorts as in [`f64::total_cmp`], so nothing here panics.

/// Returns a copy in ascending order.
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut copy = samples.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// Returns the median, in the unit of the samples. With an even number it is the midpoint of the inner two. `None` if empty.
pub fn median(samples: &[f64]) -> Option<f64> {
    median_of(&mut samples.to_vec())
}

/// Like [`median`] without a copy; it reorders the samples.
pub fn median_of(samples: &mut [f64]) -> Option<f64> {
    let (lower, upper) = inner(samples)?;
    Some(lower.midpoint(upper))
}

/// Returns the two in the middle, or the middle one twice; it reorders the samples. `None` if empty.
pub fn inner(samples: &mut [f64]) -> Option<(f64, f64)> {
    let (number, middle) = (samples.len(), samples.len() / 2);
    if number == 0 {
        return None;
    }
    let (below, &mut upper, _) = samples.select_nth_unstable_by(middle, f64::total_cmp);
    if number % 2 == 1 {
        return Some((upper, upper));
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some((lower, upper))
}

/// Returns the quantile `q` (0 to 1, clamped) of sorted samples, interpolated between two of them: definition 7 of Hyndman & Fan,
/// "Sample Quantiles in Statistical Packages" (1996). `None` if empty or if `q` is NaN.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    if q.is_nan() {
        return None;
    }
    let position = q.clamp(0.0, 1.0) * last as f64;
    let index = (position as usize).min(last);
    let (low, high) = (sorted[index], sorted[(index + 1).min(last)]);
    let part = position - index as f64;
    let between = low * (1.0 - part) + high * part; // Unlike low + (high - low) * part, never overflows.
    Some(between.max(low).min(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_few() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[3.0, 1.0, 1e9]), Some(3.0));
        assert_eq!(median(&[4.0, 3.0, 1.0, 1e9]), Some(3.5));
    }

    #[test]
    fn extremes_neither_panic_nor_overflow() {
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
        assert_eq!(median(&[f64::MAX, -f64::MAX]), Some(0.0));
        assert_eq!(quantile(&[-f64::MAX, f64::MAX], 0.5), Some(0.0));
        assert_eq!(median(&[f64::NAN, 1.0, 2.0]), Some(2.0));
        assert!(median(&[f64::NAN]).is_some_and(f64::is_nan));
        assert_eq!(quantile(&[1.0, f64::NAN], 0.0), Some(1.0));
    }

    #[test]
    fn quantiles_interpolate() {
        let sorted = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(quantile(&sorted, 0.0), Some(1.0));
        assert_eq!(quantile(&sorted, 0.25), Some(2.0));
        assert_eq!(quantile(&sorted, 0.875), Some(4.5));
        assert_eq!(quantile(&sorted, 1.0), Some(5.0));
        assert_eq!(quantile(&sorted, 9.0), Some(5.0));
        assert_eq!(quantile(&sorted, f64::NAN), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[0.1; 3], 0.33), Some(0.1));
    }
}
