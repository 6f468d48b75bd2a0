//! Intervals of ratios that alternated, and the verdicts that follow from them.

use super::total::Total;
use super::{Verdict, percent};
use crate::stats::{self, Ends, FEWEST, Interval};

/// What alternated pairs are compared by: the one quantity of all of them, which was chosen before any was looked at.
pub const QUANTITY: &str = "the median of the pairs' ratios";

/// The confidence of each of `rows` intervals: all of them hold together with 95 %, and each alone misses at most once in a thousand,
/// at whatever looks.
pub(super) fn confidence_of_each(rows: usize) -> f64 {
    const TOGETHER: f64 = 0.05;
    const EACH: f64 = 1.0 / 1000.0;
    1.0 - (TOGETHER / rows.max(1) as f64).min(EACH)
}

/// What a difference is held against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Margins {
    /// No relative difference of up to this counts.
    pub(super) margin: f64,
    /// By how much equal code was seen to differ inside an environment.
    pub(super) controls: f64,
}

impl Margins {
    /// By the whole interval alone, so that one of them holds: slower or faster, all of it beyond the margin and the controls; the
    /// same, all of it within the margin; slower or faster by an amount that is open, 1 and what the controls show outside it;
    /// inconclusive. Totals that are not shown to be the same make nothing the same. With the reason of the last.
    pub(super) fn verdict(
        self,
        interval: Option<Interval>,
        pairs: usize,
        total: Option<&Total>,
    ) -> (Verdict, Option<String>) {
        let undecided = |why| (Verdict::Inconclusive, Some(why));
        let Some(interval) = interval else { return undecided(too_few(pairs)) };
        let verdict = Verdict::by_margin(interval, self.margin, self.controls);
        match (verdict, total.and_then(|total| total.doubt(self.margin))) {
            (Verdict::Same, Some(doubt)) => undecided(doubt),
            (Verdict::Inconclusive, _) => undecided(self.reaches(interval)),
            _ => (verdict, None),
        }
    }

    fn reaches(self, Interval { low, high }: Interval) -> String {
        let span = format!("the ratio is between {low:.4} and {high:.4}");
        match low > 1.0 || high < 1.0 {
            true => format!("{span}, and equal code differed by {}", percent(self.controls)),
            false => format!("{span}: 1 is in it, and more than {}", percent(self.margin)),
        }
    }
}

fn too_few(pairs: usize) -> String {
    match pairs < FEWEST {
        true => format!("too few pairs of processes: {pairs}; an interval needs {FEWEST}"),
        false => format!("too few independent pairs: of {pairs}, neighbours resemble each other"),
    }
}

/// The interval of a ratio by the logarithms of the pairs. Pairs that resemble their neighbours too much for one say only whether it is
/// more than twice: so far the levels that one side may keep lie apart.
pub(super) fn interval_of(logs: &[f64], ends: Option<Ends>) -> Option<Interval> {
    const LEVELS: f64 = std::f64::consts::LN_2;
    let of_levels = || {
        let range = Ends::Beyond(1.0).interval(logs)?;
        let ratio = stats::median(logs)?;
        let far = (range.low > LEVELS || range.high < -LEVELS) && logs.len() >= FEWEST;
        far.then(|| range.hull(Interval { low: ratio - LEVELS, high: ratio + LEVELS }))
    };
    ends.and_then(|ends| ends.interval(logs)).or_else(of_levels).map(exp)
}

pub(super) fn exp(logs: Interval) -> Interval {
    Interval { low: logs.low.exp(), high: logs.high.exp() }
}
