//! Counts of instructions: no noise and no interval.
//!
//! A guest whose clock advances one tick per instruction has the same count in each batch and each run, so one instruction is a
//! difference. A count that varies between batches, such as that of a process's start, is compared by its batches: the medians
//! differ if the two sides have no count in common, apart from an eighth at either end; they are the same if a test of ranks sees no
//! shift. Anything between is inconclusive. Batches of one boot are more alike than those of two, so less than an instruction
//! or a thousandth is not a difference.

use super::Verdict;
use super::rows::{ComparedCase, NotCompared};
use crate::estimate::{CONFIDENCE, Level};
use crate::measurement::{Case, Measured};
use crate::run::Run;
use crate::stats::{self, Interval};
use crate::versus;

/// Returns whether a run has counts instead of times. Such an environment has no turns: nothing in it has a neighbour in time.
pub(super) fn is_counting(run: &Run) -> bool {
    run.measured().any(|(_, measured)| measured.is_count())
}

pub(super) fn not_compared(case: &Case, base: &Measured, other: &Measured) -> Option<NotCompared> {
    let is_apart = base.unit != other.unit && base.is_count() != other.is_count();
    is_apart.then(|| NotCompared { case: case.clone(), base_unit: base.unit, other_unit: other.unit })
}

/// Returns whether two measurements of a case are compared as counts. A size is a count on hardware too.
pub(super) fn are_counts(base: &Measured, other: &Measured) -> bool {
    base.unit == other.unit && (base.is_count() || other.is_count())
}

pub(super) fn row(case: &Case, base: &Measured, other: &Measured, asked: f64) -> Option<ComparedCase> {
    let sides = Side::both(base, other)?;
    let asked = asked.max(versus::least_difference(case));
    let iterations = base.ops_per_sample.min(other.ops_per_sample);
    let least = versus::least_adds(case, iterations);
    let Decision { ratio, verdict, why } = decide(sides, asked, least);
    Some(ComparedCase {
        case: case.clone(),
        base: Some(sides[0].median),
        other: Some(sides[1].median),
        ratio: ratio.unwrap_or(1.0),
        interval: None,
        verdict,
        threshold: asked,
        why,
        alternation: None,
        layouts: None,
        total: None,
        processor: None,
    })
}

#[derive(Clone, Copy)]
pub(super) struct Side<'m> {
    samples: &'m [f64],
    pub(super) median: f64,
    all: Interval,
    /// Without an eighth of the batches at either end.
    middle: Interval,
    batches: usize,
}

impl<'m> Side<'m> {
    pub(super) fn both(base: &'m Measured, other: &'m Measured) -> Option<[Self; 2]> {
        are_counts(base, other).then_some(())?;
        Some([Self::of(base)?, Self::of(other)?])
    }

    fn of(measured: &'m Measured) -> Option<Self> {
        let sorted = stats::sorted(&measured.samples);
        let ends = sorted.len() / 8;
        let inner = sorted.get(ends..sorted.len() - ends)?;
        let span = |of: &[f64]| Some(Interval { low: *of.first()?, high: *of.last()? });
        Some(Self {
            samples: &measured.samples,
            median: Level::from_measured(measured)?.median,
            all: span(&sorted)?,
            middle: span(inner)?,
            batches: sorted.len(),
        })
    }

    fn is_exact(&self) -> bool {
        self.all.low == self.all.high
    }
}

pub(super) struct Decision {
    /// other / base; `None` if only one of the two is not above zero.
    pub(super) ratio: Option<f64>,
    pub(super) verdict: Verdict,
    pub(super) why: Option<String>,
}

pub(super) fn decide([base, other]: [Side<'_>; 2], asked: f64, least: f64) -> Decision {
    let ratio = if base.median == other.median {
        Some(1.0)
    } else {
        Some(other.median / base.median)
            .filter(|ratio| base.median > 0.0 && other.median > 0.0 && ratio.is_normal())
    };
    let same = |why| Decision { ratio, verdict: Verdict::Same, why };
    if base.median == other.median {
        return same(None);
    }
    let (low, high) = (base.median.min(other.median), base.median.max(other.median));
    if high <= low * (1.0 + asked) || high - low <= least {
        return same(None);
    }
    if let Some(why) = of_shares(base, other) {
        return same(Some(why));
    }
    match of_spread(base, other) {
        Spread::Among(why) => same(Some(why)),
        Spread::Between(why) => Decision { ratio, verdict: Verdict::Inconclusive, why: Some(why) },
        Spread::Apart => {
            let verdict = if other.median > base.median { Verdict::Slower } else { Verdict::Faster };
            Decision { ratio, verdict, why: None }
        }
    }
}

/// A difference of less than an instruction does not count if a count is not a whole number: some operations take another path,
/// such as the last of a ring, and two boots, or batches of two lengths, differ in how many do.
fn of_shares(base: Side<'_>, other: Side<'_>) -> Option<String> {
    let is_whole = |side: Side<'_>| side.median.fract() == 0.0;
    let is_small = (base.median - other.median).abs() < 1.0;
    (is_small && !(is_whole(base) && is_whole(other))).then(|| {
        "less than one instruction per operation, from work that not every operation does".to_owned()
    })
}

enum Spread {
    /// Counts are exact, or no batch of one side is among those of the other.
    Apart,
    /// A test of ranks sees no shift.
    Among(String),
    /// A test of ranks sees a shift, but the batches are too few or too wide to say that they would lie apart again.
    Between(String),
}

/// For samples of one distribution, 15 on each side are [`Spread::Apart`] once in a hundred thousand comparisons; 9 or 5, whose
/// gap must be as wide as their range, once in ten thousand.
fn of_spread(base: Side<'_>, other: Side<'_>) -> Spread {
    /// The least share by which varying batches differ; also at least one instruction.
    const LEAST: f64 = 0.001;
    let varying: Vec<Side<'_>> = [base, other].into_iter().filter(|side| !side.is_exact()).collect();
    let Some(batches) = varying.iter().map(|side| side.batches).min() else { return Spread::Apart };
    let widest = varying.iter().map(|side| side.middle.high - side.middle.low).fold(0.0, f64::max);
    let widths = match batches {
        15.. => 0.0,
        5.. => 1.0,
        _ => 10.0,
    };
    let gap = (other.middle.low - base.middle.high).max(base.middle.low - other.middle.high);
    let difference = (other.median - base.median).abs();
    let is_least = difference >= 1.0 && difference >= LEAST * base.median.abs();
    if is_least && gap > 0.0 && gap >= widths * widest {
        return Spread::Apart;
    }
    let span = |side: Side<'_>| {
        if side.is_exact() {
            figure(side.median)
        } else {
            format!("{} to {}", figure(side.all.low), figure(side.all.high))
        }
    };
    let why = format!("batches differ: {} in the base, {} in the other", span(base), span(other));
    let shift = stats::shift(base.samples, other.samples, CONFIDENCE).and_then(|shift| shift.interval);
    // Too few samples for an interval count only if none of one side lies among those of the other.
    let is_seen = shift.map_or(gap > 0.0, |interval| !interval.contains(0.0));
    if !is_least || !is_seen { Spread::Among(why) } else { Spread::Between(why) }
}

fn figure(count: f64) -> String {
    let text = format!("{count:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
