//! Intervals of ratios that alternated, and the verdicts that follow from them.

use crate::total::Total;
use crate::{Ends, FEWEST, Interval, Verdict, median, percent};

/// What alternated pairs are compared by: the one quantity of all of them, which was chosen before any was looked at.
pub const QUANTITY: &str = "the median of the pairs' ratios";

/// Where turns alternated no relative difference of up to this counts, unless another one is asked for.
const MARGIN: f64 = 0.01;

/// The relative difference up to which none counts, where turns alternated: what was asked for, or 1 % where that is nothing.
pub fn margin(asked: f64) -> f64 {
    if asked > 0.0 { asked } else { MARGIN }
}

/// The confidence of each of `rows` intervals: all of them hold together with 95 %, and each alone misses at most once in a thousand,
/// at whatever looks.
pub fn confidence_of_each(rows: usize) -> f64 {
    confidence_of_selected(rows, 1)
}

const TOGETHER: f64 = 0.05;
const EACH: f64 = 1.0 / 1000.0;

fn confidence_of_selected(rows: usize, selected: usize) -> f64 {
    1.0 - (TOGETHER * selected as f64 / rows.max(1) as f64).min(EACH)
}

/// The same where so many rows differ that at most a twentieth of those that are called different is expected to be wrong, which more rows
/// may be than one: `different` are at a confidence. Where nothing differs it is that of each (Benjamini & Hochberg, "Controlling the False
/// Discovery Rate", 1995). The intervals of the rows that are selected like that hold it too (Benjamini & Yekutieli, "False Discovery
/// Rate-Adjusted Multiple Confidence Intervals for Selected Parameters", 2005).
pub fn confidence_of_different(rows: usize, different: impl Fn(f64) -> usize) -> f64 {
    let most = (EACH / TOGETHER * rows as f64).ceil() as usize;
    let levels = (2..=most).rev().map(|selected| (selected, confidence_of_selected(rows, selected)));
    let mut found = levels.filter(|(selected, confidence)| different(*confidence) >= *selected);
    found.next().map_or(confidence_of_each(rows), |(_, confidence)| confidence)
}

/// What a difference is held against.
#[derive(Debug, Clone, Copy)]
pub struct Margins {
    /// No relative difference of up to this counts.
    pub margin: f64,
    /// By how much equal code was seen to differ inside an environment.
    pub controls: f64,
}

impl Margins {
    /// By the whole interval alone, so that one of them holds: slower or faster, all of it beyond the margin and the controls; the
    /// same, all of it within the margin; slower or faster by an amount that is open, 1 and what the controls show outside it;
    /// inconclusive. Totals that are not shown to be the same make nothing the same. With the reason of the last.
    pub fn verdict(
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
pub fn interval_of(logs: &[f64], ends: Option<Ends>) -> Option<Interval> {
    const LEVELS: f64 = std::f64::consts::LN_2;
    let of_levels = || {
        let range = Ends::Beyond(1.0).interval(logs)?;
        let ratio = median(logs)?;
        let far = (range.low > LEVELS || range.high < -LEVELS) && logs.len() >= FEWEST;
        far.then(|| range.hull(Interval { low: ratio - LEVELS, high: ratio + LEVELS }))
    };
    ends.and_then(|ends| ends.interval(logs)).or_else(of_levels).map(exp)
}

/// An interval of a ratio, by that of its logarithm.
pub fn exp(logs: Interval) -> Interval {
    Interval { low: logs.low.exp(), high: logs.high.exp() }
}
