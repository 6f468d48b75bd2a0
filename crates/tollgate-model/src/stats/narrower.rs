//! The centre of pairs of single values, by the narrower of two intervals.

use super::interval::{Interval, sign_test_rank};
use super::order::{median_of, sorted};
use super::series::shown_autocorrelation;
use super::signed::{Centre, FEWEST_PAIRS, centre};

/// The centre of differences of pairs of one value each, in the order of time: by signed ranks ([`centre`]), or by the median with the
/// interval of the sign test, whichever is narrower. Each of the two has half of what may be missed, so both hold together with
/// `confidence`, and so does the one that is taken (Bonferroni's inequality).
///
/// Signed ranks are narrow where the differences vary evenly. Where another program takes a processor during some of the executions,
/// a part of the differences lies very far out: that widens ranks and hardly moves the middle.
///
/// Pairs of several values have [`centre`] alone.
pub(crate) fn narrower_centre(pairs: &[Vec<f64>], confidence: f64) -> Option<Centre> {
    let is_single = pairs.iter().all(|pair| pair.len() == 1);
    let half = 1.0 - (1.0 - confidence) / 2.0;
    let by_ranks = centre(pairs, if is_single { half } else { confidence })?;
    if !is_single || pairs.len() < FEWEST_PAIRS {
        return Some(by_ranks);
    }
    let Some(by_signs) = by_signs(&mut pairs.concat(), half) else { return centre(pairs, confidence) };
    let width =
        |centre: &Centre| centre.interval.map_or(f64::INFINITY, |interval| interval.high - interval.low);
    Some(if width(&by_signs) < width(&by_ranks) { by_signs } else { by_ranks })
}

/// The median; None where there are too few values for an interval.
fn by_signs(values: &mut [f64], confidence: f64) -> Option<Centre> {
    let times = shown_autocorrelation(values);
    let estimate = median_of(values)?;
    let in_order = sorted(values);
    let number = in_order.len();
    let rank = sign_test_rank(number, confidence)?;
    // Of values that resemble their neighbours the number of signs varies more.
    let beside = (number as f64 / 2.0 - rank as f64).max(0.0) * times.sqrt();
    let rank = (number as f64 / 2.0 - beside).floor();
    if rank < 1.0 {
        return None;
    }
    let rank = rank as usize;
    let interval = Interval { low: in_order[rank - 1], high: in_order[number - rank] };
    interval.low.is_finite().then_some(())?;
    interval.high.is_finite().then_some(Centre { estimate, interval: Some(interval) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform between 0 and 1, by a linear congruence.
    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        /// The difference of two executions, each of which another program disturbs with this share.
        fn difference(&mut self, share: f64, shift: f64) -> Vec<f64> {
            let mut execution = || {
                let own = 0.01 * (self.next() + self.next() - 1.0);
                let disturbed = if self.next() < share { 1.5 * self.next() } else { 0.0 };
                own + disturbed
            };
            let base = execution();
            vec![execution() + shift - base]
        }
    }

    fn width(centre: &Centre) -> f64 {
        centre.interval.map_or(f64::INFINITY, |interval| interval.high - interval.low)
    }

    #[test]
    fn disturbed_executions_leave_the_middle_narrow() {
        let mut noise = Noise(1);
        let pairs: Vec<Vec<f64>> = (0..200).map(|_| noise.difference(0.4, 0.03)).collect();
        let (ranks, both) = (centre(&pairs, 0.999).unwrap(), narrower_centre(&pairs, 0.999).unwrap());
        assert!(width(&both) < 0.25 * width(&ranks), "{} {}", width(&both), width(&ranks));
        assert!(both.interval.unwrap().contains(0.03), "{both:?}");
        // Evenly noisy ones have nearly the interval of the ranks.
        let pairs: Vec<Vec<f64>> = (0..200).map(|_| noise.difference(0.0, 0.03)).collect();
        let (ranks, both) = (centre(&pairs, 0.999).unwrap(), narrower_centre(&pairs, 0.999).unwrap());
        assert!(width(&both) < 1.1 * width(&ranks), "{} {}", width(&both), width(&ranks));
    }

    #[test]
    fn it_misses_no_more_often_than_it_says() {
        let mut noise = Noise(7);
        for share in [0.0, 0.2, 0.5] {
            let missed = (0..1500).filter(|_| {
                let pairs: Vec<Vec<f64>> = (0..30).map(|_| noise.difference(share, 0.0)).collect();
                !narrower_centre(&pairs, 0.95).unwrap().interval.unwrap().contains(0.0)
            });
            // 75 are expected at most, with a deviation of 8.
            let missed = missed.count();
            assert!(missed <= 100, "{share}: {missed}");
        }
    }

    #[test]
    fn few_pairs_and_pairs_of_several_values_have_signed_ranks() {
        let few: Vec<Vec<f64>> = (0..9).map(|at| vec![f64::from(at)]).collect();
        assert_eq!(narrower_centre(&few, 0.9999), centre(&few, 0.9999));
        assert_eq!(narrower_centre(&few[..4], 0.95).unwrap().interval, None);
        let several: Vec<Vec<f64>> = (0..20).map(|at| vec![f64::from(at), f64::from(at * 7 % 11)]).collect();
        assert_eq!(narrower_centre(&several, 0.95), centre(&several, 0.95));
        assert_eq!(narrower_centre(&[], 0.95), None);
    }
}
