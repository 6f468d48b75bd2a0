//! Compares two sides across layouts: each was linked several times, with its functions in another order, and a layout is the unit.
//!
//! All executions of one layout share what its addresses do to caches and branch predictors (Mytkowicz et al., "Producing Wrong
//! Data Without Doing Anything Obviously Wrong!", ASPLOS 2009), so more of them say nothing about the source. Layouts that were
//! drawn at random are independent (Curtsinger & Berger, "STABILIZER", ASPLOS 2013).

use serde::{Deserialize, Serialize};

use crate::normal::{normal_quantile, student};
use crate::{Interval, Verdict, exp, median};

/// The fewest layouts of a side that have an interval. If a layout is as likely to be fast as slow, four of one side are all
/// fast and four of the other all slow in 0.8 % of the comparisons, but six in 0.05 %.
pub const FEWEST_LAYOUTS: usize = 6;

/// Comparisons are looked at while they are measured, and end when they are decided. The error of one look is that of all looks
/// divided by this: even if noise drowns out the layouts, equal sources are called different no more often than at a single look.
const LOOKS: f64 = 8.0;

/// How the layouts of two sides compare.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Layouts {
    /// How many each side has.
    pub number: usize,
    /// The other side's geometric mean over the base's.
    pub ratio: f64,
    /// The interval of that ratio.
    pub interval: Interval,
    /// How far the layouts of each side lie apart: the slowest over the fastest, less 1.
    pub apart: [f64; 2],
    /// The ratios that one layout a side would have shown, from the least to the greatest.
    pub by_one: Interval,
    /// Whether the layouts lie apart by more than executions of one layout make their medians differ.
    pub are_apart: bool,
    /// About how many layouts of each side give a verdict if the medians seen are typical. `None` if a thousand would not, or if
    /// the noise of executions is what keeps it open.
    pub deciding: Option<usize>,
}

impl Layouts {
    /// Compares executions of two sides, times above zero, as one of those comparisons that hold together with `confidence`, at all
    /// looks. Executions with the same index were neighbours in time, and belong to the layout with the index modulo `number`. A layout counts by
    /// its median. Relative differences up to `margin` do not count. `None` below [`FEWEST_LAYOUTS`], until each was executed, and if a median is not finite.
    ///
    /// The interval is the narrower of two, each with half of the error: that of [`Layouts::compare`], and Student's t of the layouts'
    /// medians of the logarithms of the pairs' ratios, which exclude the machine's pace, since neighbours in time share it.
    pub fn of_pairs(
        pairs: impl Iterator<Item = (usize, [f64; 2])>,
        number: usize,
        confidence: f64,
        margin: f64,
    ) -> Option<Self> {
        let mut layouts = vec![[const { Vec::new() }; 3]; number];
        for (execution, [base, other]) in pairs {
            let of_layout = &mut layouts[execution % number];
            let logs = [base.ln(), other.ln(), (other / base).ln()];
            of_layout.iter_mut().zip(logs).for_each(|(logs, log)| logs.push(log));
        }
        let side = |at: usize| Side::of(layouts.iter().map(|layout| &layout[at]));
        let [base, other, pairs] = [side(0)?, side(1)?, side(2)?];
        let one = 1.0 - (1.0 - confidence) / LOOKS;
        let each = 1.0 - (1.0 - one) / 2.0;
        let across = Self::between(&base, &other, each, margin);
        let half = pairs.half_width(&Side { variance: 0.0, ..pairs }, [pairs.number; 2], each);
        let interval = exp(Interval { low: pairs.mean - half, high: pairs.mean + half });
        let is_narrower = interval.high / interval.low < across.interval.high / across.interval.low;
        let are_apart = base.is_apart() || other.is_apart();
        let found = Self { are_apart, deciding: across.deciding.filter(|_| are_apart), ..across };
        Some(if is_narrower { Self { ratio: pairs.mean.exp(), interval, ..found } } else { found })
    }

    /// Compares the medians of the layouts of two sides, times above zero, by Student's t of their logarithms, without assuming
    /// equal variances (Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    /// Biometrika 34, 1947).
    pub fn compare(base: &[f64], other: &[f64], confidence: f64, margin: f64) -> Option<Self> {
        let side = |medians: &[f64]| Side::of(medians.iter().map(|median| [median.ln()]));
        Some(Self::between(&side(base)?, &side(other)?, confidence, margin))
    }

    fn between(base: &Side, other: &Side, confidence: f64, margin: f64) -> Self {
        let change = other.mean - base.mean;
        let interval = |numbers: [f64; 2]| {
            let half = base.half_width(other, numbers, confidence);
            exp(Interval { low: change - half, high: change + half })
        };
        let is_decided = |number: &usize| {
            Verdict::by_margin(interval([*number as f64; 2]), margin, 0.0) != Verdict::Inconclusive
        };
        let by_one = Interval { low: other.all.low - base.all.high, high: other.all.high - base.all.low };
        Self {
            number: base.number.min(other.number) as usize,
            ratio: change.exp(),
            interval: interval([base.number, other.number]),
            apart: [base, other].map(|side| (side.all.high - side.all.low).exp_m1()),
            by_one: exp(by_one),
            are_apart: true,
            deciding: (FEWEST_LAYOUTS..=1000).find(is_decided),
        }
    }
}

/// Statistics over the layouts of a side, each of which has the median of its logarithms.
struct Side {
    number: f64,
    mean: f64,
    variance: f64,
    /// The part of the variance that comes from executions: the mean variance of a layout's median.
    noise: f64,
    all: Interval,
}

impl Side {
    fn of(layouts: impl Iterator<Item = impl AsRef<[f64]>>) -> Option<Self> {
        let (mut logs, mut noise) = (Vec::new(), 0.0);
        for layout in layouts {
            let of_layout = layout.as_ref();
            let middle = median(of_layout).filter(|middle| middle.is_finite())?;
            let away: Vec<f64> = of_layout.iter().map(|log| (log - middle).abs()).collect();
            // The standard deviation of a normal distribution by its median absolute deviation; then the variance of its median.
            let deviation = 1.4826 * median(&away)?;
            noise += (std::f64::consts::PI / 2.0) * deviation.powi(2) / of_layout.len() as f64;
            logs.push(middle);
        }
        if logs.len() < FEWEST_LAYOUTS {
            return None;
        }
        let number = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / number;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (number - 1.0);
        Some(Self { number, mean, variance, noise: noise / number, all: Interval::range(&logs)? })
    }

    fn is_apart(&self) -> bool {
        self.variance > 2.0 * self.noise
    }

    /// Half the width of the interval of the difference of two means, over `numbers` layouts with the observed variances.
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

    fn compared(base: &[f64], other: &[f64]) -> Option<Layouts> {
        Layouts::compare(base, other, 0.999, 0.01)
    }

    #[test]
    fn executions_belong_to_layouts_in_turn_and_one_layout_a_side_shows_what_they_differ_by() {
        // Each layout has an execution that something disturbed.
        let pairs = |number: usize| {
            (0..number).map(move |at| {
                let disturbed = if at < 6 { 50.0 } else { 1.0 };
                let base = disturbed * [100.0, 101.0, 102.0, 103.0, 104.0, 110.0][at % 6];
                (at, [base, 2.0 * base])
            })
        };
        let found = |number| Layouts::of_pairs(pairs(number), 6, 0.999, 0.01);
        let seen = found(18).unwrap();
        assert!((seen.ratio - 2.0).abs() < 1e-9 && seen.apart.iter().all(|apart| (apart - 0.1).abs() < 1e-9));
        assert!((seen.by_one.low - 2.0 / 1.1).abs() < 1e-9 && (seen.by_one.high - 2.2).abs() < 1e-9);
        assert_eq!((found(5), seen.number), (None, 6));
        // The pairs' ratios are equal, however far the layouts lie apart.
        assert!(seen.interval.high / seen.interval.low < 1.0 + 1e-9, "{seen:?}");
        let bad = |figure: f64| Layouts::of_pairs((0..12).map(|at| (at, [1.0, figure])), 6, 0.999, 0.01);
        assert_eq!([0.0, -1.0, f64::NAN, f64::INFINITY].map(bad), [None; 4]);
    }

    #[test]
    fn noise_of_executions_asks_for_time_and_layouts_that_lie_apart_for_layouts() {
        let found = |layout: f64, noise: f64| {
            let figure = |at: usize, of: usize| {
                let of_layout = layout * (at % 8 * of % 8) as f64;
                100.0 * (1.0 + of_layout + noise * ((at * 7919 + of) % 13) as f64)
            };
            Layouts::of_pairs((0..64).map(|at| (at, [figure(at, 3), figure(at, 5)])), 8, 0.999, 0.01).unwrap()
        };
        let (apart, noisy) = (found(0.02, 0.0001), found(0.0, 0.02));
        assert!(apart.are_apart && apart.deciding.is_some_and(|number| number > 8), "{apart:?}");
        assert!(!noisy.are_apart && noisy.deciding.is_none(), "{noisy:?}");
    }

    /// Layouts around `time`, `step` apart.
    fn around(time: f64, step: f64, number: usize) -> Vec<f64> {
        (0..number).map(|at| time * (1.0 + step * (at as f64 - (number - 1) as f64 / 2.0))).collect()
    }

    /// Welch's test by hand: logarithms with means 0 and 0.1, each with the variance of -0.01, four times 0, and 0.01 around it.
    #[test]
    fn the_interval_is_that_of_welch() {
        let at = |mean: f64| [-0.01, 0.0, 0.0, 0.0, 0.0, 0.01].map(|log: f64| (mean + log).exp());
        let found = Layouts::compare(&at(0.0), &at(0.1), 0.99, 0.01).unwrap();
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
            let found = compared(&around(100.0, step, 8), &around(103.0, step, 8)).unwrap();
            found.interval.high - found.interval.low
        };
        assert!(width(0.001) < width(0.004) && width(0.004) < width(0.02));
        let asked = |step: f64| {
            compared(&around(100.0, step, 8), &around(103.0, step, 8)).and_then(|found| found.deciding)
        };
        assert_eq!(asked(0.0), Some(FEWEST_LAYOUTS));
        assert!(asked(0.002) < asked(0.01) && asked(0.01) < asked(0.02), "{:?}", asked(0.02));
        // Nothing but the width can be learnt about equal sides.
        let equal = around(100.0, 0.01, 8);
        assert!(compared(&equal, &equal).unwrap().deciding.is_some_and(|number| number > 8));
    }

    #[test]
    fn too_few_and_no_times_have_no_interval() {
        let six = around(100.0, 0.01, 6);
        assert!(compared(&six, &six).is_some());
        let with = |time: f64| [&six[..5], &[time]].concat();
        let bad = [six[..5].to_vec(), vec![], with(0.0), with(f64::NAN), with(-1.0), with(f64::INFINITY)];
        for bad in &bad {
            assert_eq!((compared(&six, bad), compared(bad, &six)), (None, None), "{bad:?}");
        }
    }
}
