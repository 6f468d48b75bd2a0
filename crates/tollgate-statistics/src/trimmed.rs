pub const RUNS: usize = 12;

/// Returns the mean of the first twelve samples without the highest and the lowest, the estimator of a published comparison (Machida
/// and Shinohara, Sony Research Forum 2000), to be shown next to the median. `None` if there are fewer, or if one is not finite.
pub fn trimmed_mean(samples: &[f64]) -> Option<f64> {
    let mut runs = samples.get(..RUNS)?.to_vec();
    runs.sort_unstable_by(f64::total_cmp);
    let kept = runs.get(1..RUNS - 1)?;
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_either_end_does_not_count() {
        let mut runs: Vec<f64> = vec![10.0; 8];
        runs.extend([1e9, 20.0, 0.0, 20.0]);
        assert_eq!(trimmed_mean(&runs), Some(12.0));
        runs.push(5e9);
        assert_eq!(trimmed_mean(&runs), Some(12.0));
        assert_eq!(trimmed_mean(&runs[..11]), None);
        assert_eq!(trimmed_mean(&[f64::NAN; 12]), None);
    }
}
