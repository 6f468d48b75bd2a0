//! A change across layouts: each side was linked several times with its functions in another order, and a layout is the unit.
//!
//! All executions of one layout share what its addresses do to caches and branch predictors (Mytkowicz et al., "Producing Wrong
//! Data Without Doing Anything Obviously Wrong!", ASPLOS 2009), so more of them say nothing about the source. Layouts that were
//! drawn at random are independent (Curtsinger & Berger, "STABILIZER", ASPLOS 2013).

use crate::normal::{normal_quantile, student};
use crate::{Interval, Verdict, confidence_of_each, exp};

/// The fewest layouts of a side that have an interval. Where a layout is as likely fast as slow, four of one side are all fast and
/// four of the other all slow in 0.8 % of the comparisons, but six in 0.05 %.
pub const FEWEST_LAYOUTS: usize = 6;

/// How the layouts of two sides compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layouts {
    /// The other side's geometric mean over the base's.
    pub ratio: f64,
    /// The interval of that ratio.
    pub interval: Interval,
    /// How far the layouts of each side lie apart: the slowest over the fastest, less 1.
    pub apart: [f64; 2],
}

impl Layouts {
    /// Compares the medians of the layouts of two sides, times above zero, by Student's t of their logarithms with variances of
    /// their own (Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    /// Biometrika 34, 1947). `None` below [`FEWEST_LAYOUTS`] a side, and if a median is not a time.
    pub fn compare(base: &[f64], other: &[f64], confidence: f64) -> Option<Self> {
        let [base, other] = [Side::of(base)?, Side::of(other)?];
        let half = base.half_width(&other, [base.number, other.number], confidence);
        let change = other.mean - base.mean;
        let interval = exp(Interval { low: change - half, high: change + half });
        Some(Self { ratio: change.exp(), interval, apart: [base.apart, other.apart] })
    }

    /// Returns about how many layouts of each side give a verdict if the medians seen are typical and no relative difference up to
    /// `margin` counts. `None` if a thousand would not.
    pub fn that_decide(base: &[f64], other: &[f64], margin: f64) -> Option<usize> {
        let [base, other] = [Side::of(base)?, Side::of(other)?];
        let change = other.mean - base.mean;
        let is_decided = |number: &usize| {
            let half = base.half_width(&other, [*number as f64; 2], confidence_of_each(1));
            let interval = exp(Interval { low: change - half, high: change + half });
            Verdict::by_margin(interval, margin, 0.0) != Verdict::Inconclusive
        };
        (FEWEST_LAYOUTS..=1000).find(is_decided)
    }
}

/// The logarithms of the medians of a side.
struct Side {
    number: f64,
    mean: f64,
    variance: f64,
    apart: f64,
}

impl Side {
    fn of(medians: &[f64]) -> Option<Self> {
        if medians.len() < FEWEST_LAYOUTS || !medians.iter().all(|median| median.is_normal() && *median > 0.0)
        {
            return None;
        }
        let logs: Vec<f64> = medians.iter().map(|median| median.ln()).collect();
        let number = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / number;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (number - 1.0);
        let Interval { low, high } = Interval::range(&logs)?;
        Some(Self { number, mean, variance, apart: (high - low).exp_m1() })
    }

    /// Half the width of the interval of the difference of two means, of `numbers` layouts with the variances seen.
    fn half_width(&self, other: &Self, numbers: [f64; 2], confidence: f64) -> f64 {
        let [base, other] = [self.variance / numbers[0], other.variance / numbers[1]];
        let squared = base + other;
        if squared == 0.0 {
            return 0.0;
        }
        // Satterthwaite's degrees of freedom.
        let freedom =
            squared.powi(2) / (base.powi(2) / (numbers[0] - 1.0) + other.powi(2) / (numbers[1] - 1.0));
        student(normal_quantile(0.5 + confidence / 2.0), freedom) * squared.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layouts around `time`, `step` apart.
    fn around(time: f64, step: f64, number: usize) -> Vec<f64> {
        (0..number).map(|at| time * (1.0 + step * (at as f64 - (number - 1) as f64 / 2.0))).collect()
    }

    /// Welch's test by hand: logarithms with means 0 and 0.1, each with the variance of -0.01, four times 0, and 0.01 around it.
    #[test]
    fn the_interval_is_that_of_welch() {
        let at = |mean: f64| [-0.01, 0.0, 0.0, 0.0, 0.0, 0.01].map(|log: f64| (mean + log).exp());
        let found = Layouts::compare(&at(0.0), &at(0.1), 0.99).unwrap();
        // t(0.995; 10) = 3.1693; variance 2e-4 / 5 of either, so the difference has a standard error of sqrt(2 · 2e-4 / 5 / 6).
        let half = 3.1693 * (2.0 * 2e-4 / 5.0 / 6.0_f64).sqrt();
        assert!((found.ratio - 0.1_f64.exp()).abs() < 1e-12);
        assert!((found.interval.low.ln() - (0.1 - half)).abs() < 0.02 * half, "{found:?}");
        assert!((found.interval.high.ln() - (0.1 + half)).abs() < 0.02 * half, "{found:?}");
        assert!(found.apart.iter().all(|apart| (apart - 0.02_f64.exp_m1()).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn layouts_far_apart_widen_the_interval_and_ask_for_more() {
        let width = |step: f64| {
            let found = Layouts::compare(&around(100.0, step, 8), &around(103.0, step, 8), 0.999).unwrap();
            found.interval.high - found.interval.low
        };
        assert!(width(0.001) < width(0.004) && width(0.004) < width(0.02));
        let asked = |step: f64| Layouts::that_decide(&around(100.0, step, 8), &around(103.0, step, 8), 0.01);
        assert_eq!(asked(0.0), Some(FEWEST_LAYOUTS));
        assert!(asked(0.002) < asked(0.01) && asked(0.01) < asked(0.02), "{:?}", asked(0.02));
        // Nothing but the width can be learnt about equal sides.
        let equal = around(100.0, 0.01, 8);
        assert!(Layouts::that_decide(&equal, &equal, 0.01).is_some_and(|number| number > 8));
    }

    #[test]
    fn too_few_and_no_times_have_no_interval() {
        let six = around(100.0, 0.01, 6);
        assert!(Layouts::compare(&six, &six, 0.999).is_some());
        let with = |time: f64| [&six[..5], &[time]].concat();
        let bad = [six[..5].to_vec(), vec![], with(0.0), with(f64::NAN), with(-1.0), with(f64::INFINITY)];
        for bad in &bad {
            assert_eq!(Layouts::compare(&six, bad, 0.999), None, "{bad:?}");
            assert_eq!(Layouts::that_decide(bad, &six, 0.01), None, "{bad:?}");
        }
    }
}
