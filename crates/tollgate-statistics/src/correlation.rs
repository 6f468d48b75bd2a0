/// Fewer pairs do not show a correlation.
const FEWEST: usize = 12;

/// Returns Spearman's rank correlation, -1 to 1: Pearson's correlation of the ranks, which a single interrupt cannot decide. Equal
/// values share the mean of their ranks. `None` if one side does not vary, with fewer than twelve pairs, or if the lengths differ.
pub fn rank_correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() < FEWEST || one.len() != other.len() {
        return None;
    }
    let (one, other) = (centred_ranks(one), centred_ranks(other));
    let product =
        |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let deviations = (product(&one, &one) * product(&other, &other)).sqrt();
    (deviations > 0.0).then(|| (product(&one, &other) / deviations).clamp(-1.0, 1.0))
}

/// Returns the rank of each value less the mean rank. Equal values share the mean of their ranks.
pub fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    let middle = values.len().saturating_sub(1) as f64 / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = first as f64 + (equal.len() - 1) as f64 / 2.0;
        equal.iter().for_each(|&at| ranks[at] = rank - middle);
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_decide() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        let grown: Vec<f64> = rising.iter().map(|x| x.exp()).collect();
        let falling: Vec<f64> = rising.iter().map(|x| -x).collect();
        assert_eq!(rank_correlation(&rising, &grown), Some(1.0));
        assert_eq!(rank_correlation(&rising, &falling), Some(-1.0));
        assert_eq!(rank_correlation(&rising, &[7.0; 20]), None);
        assert_eq!(rank_correlation(&rising[..11], &grown[..11]), None);
        assert_eq!(rank_correlation(&rising, &grown[1..]), None);
    }

    /// Conover's treatment of ties: the ranks of the one are 1.5 1.5 3.5 3.5 …
    #[test]
    fn equal_values_share_their_ranks() {
        let pairs: Vec<f64> = (0..12).map(|at| f64::from(at / 2)).collect();
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        let found = rank_correlation(&pairs, &rising).unwrap();
        assert!((found - (140.0_f64 / 143.0).sqrt()).abs() < 1e-12, "{found}");
        assert_eq!(centred_ranks(&[5.0, 1.0, 5.0]), [0.5, -1.0, 0.5]);
    }
}
