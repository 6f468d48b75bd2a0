//! Two cases of one run, round by round.

use serde::{Deserialize, Serialize};

use super::index::Index;
use super::rounds::Rounds;
use super::{LEAST_FLOOR, Verdict, confidence_of_each, figure, floor, reaches_across};
use crate::measurement::{Case, Measured};
use crate::own::TWIN;
use crate::price::Level;
use crate::run::Run;
use crate::stats::Interval;

/// A case against another of the same rounds. Every figure is finite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// What it is held against.
    pub against: Case,
    /// The median of case / against over the rounds; 1 where there is no ratio because `against` is never
    /// above zero, and then `ratio_interval` is None.
    pub ratio: f64,
    /// Of the ratio; corrected for the number of rows. None where there are too few rounds, or where
    /// `against` is so often not above zero that a ratio means nothing.
    pub ratio_interval: Option<Interval>,
    /// The median of the differences case - against, in the unit of the samples.
    pub adds: f64,
    /// Of the differences; corrected likewise. None where there are too few rounds.
    pub adds_interval: Option<Interval>,
    /// The verdict on the ratio.
    pub verdict: Verdict,
    /// The relative difference below which nothing is called: the larger of 1 % and what the twin differs by.
    pub floor: f64,
    /// Why it cannot be told; only then.
    pub why: Option<String>,
}

/// Every case of a run against the one it names, in the run's order, corrected for their number.
pub fn paired_rows(run: &Run) -> Vec<(Case, Paired)> {
    let index = Index::new(run);
    let joined: Vec<_> = index
        .measured()
        .filter_map(|(name, case)| Some((name, case, joinable(&index, case)?)))
        .filter(|(_, case, against)| Rounds::any(case, against))
        .collect();
    let floor = LEAST_FLOOR.max(floor::of_twins(&index, None));
    let rows = joined.iter().filter_map(|(name, case, against)| {
        let floor = if name.probe == TWIN { floor_without(&index, case) } else { floor };
        Some(((*name).clone(), hold(&index, case, against, joined.len(), floor)?))
    });
    rows.collect()
}

/// `case`, a measurement of `run`, against what it names, round by round; corrected as one of `rows` such
/// comparisons. None where it names nothing, or where the two do not share a unit, a provenance, a group and rounds.
///
/// The ratio is the median of the ratios of the rounds with the sign test's interval (Conover, *Practical
/// Nonparametric Statistics*, 3.2 and 3.4). As ranks do not change under a logarithm this is the median of the
/// log-ratios, but a round in which `case` is not above zero still counts. A round in which `against` is not
/// above zero may mean any ratio, so the interval takes it as minus infinity below and as infinity above.
///
/// Rounds of one process are not independent: a process keeps its page placement and its level. So the
/// interval is widened to hold the interval of the processes' medians too, at 99 % or, where they are too
/// few for that, all of them. A verdict is thus never that of one process alone out of several.
pub fn paired(run: &Run, case: &Measured, rows: usize) -> Option<Paired> {
    let index = Index::new(run);
    let against = joinable(&index, case)?;
    hold(&index, case, against, rows, floor_without(&index, case))
}

fn floor_without(index: &Index<'_>, case: &Measured) -> f64 {
    LEAST_FLOOR.max(floor::of_twins(index, Some(case)))
}

fn joinable<'a>(index: &Index<'a>, case: &Measured) -> Option<&'a Measured> {
    let against = index.measured_case(case.against.as_ref()?)?;
    let alike =
        case.group == against.group && case.unit == against.unit && case.provenance == against.provenance;
    alike.then_some(against)
}

fn hold(index: &Index<'_>, case: &Measured, against: &Measured, rows: usize, floor: f64) -> Option<Paired> {
    let rounds = Rounds::new(case, against);
    let confidence = confidence_of_each(rows);
    let adds = rounds.adds()?;
    let ratio = rounds.ratio().filter(|ratio| ratio.is_finite());
    let ratio_interval = ratio.and_then(|_| rounds.ratio_interval(confidence));
    let (verdict, why) = match (below_resolution(index, against), ratio_interval) {
        (Some(bound), _) => (
            Verdict::CannotTell,
            Some(format!("what it is held against is below {} {}", figure(bound), against.unit)),
        ),
        (None, None) => (Verdict::CannotTell, Some(rounds.why_no_ratio(confidence))),
        (None, Some(interval)) => match Verdict::of(interval, floor) {
            Verdict::CannotTell => (Verdict::CannotTell, Some(reaches_across(interval, floor))),
            verdict => (verdict, None),
        },
    };
    Some(Paired {
        against: case.against.clone()?,
        ratio: ratio.unwrap_or(1.0),
        ratio_interval,
        adds,
        adds_interval: rounds.adds_interval(confidence),
        verdict,
        floor,
        why,
    })
}

fn below_resolution(index: &Index<'_>, measured: &Measured) -> Option<f64> {
    Level::of(measured)?.below(index.resolution(measured)?)
}
