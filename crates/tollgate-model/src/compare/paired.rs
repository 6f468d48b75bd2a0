//! Two cases of one run, round by round.

use serde::{Deserialize, Serialize};

use super::index::Index;
use super::{LEAST_FLOOR, Verdict, confidence_of_each, floor, reaches_across};
use crate::measurement::{Case, Measured, ProcessRounds};
use crate::price::Level;
use crate::run::Run;
use crate::stats::{self, Interval};

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
        .filter(|(_, case, against)| join(case, against).any(|process| !process.is_empty()))
        .collect();
    let floor = LEAST_FLOOR.max(floor::of_twins(&index, None));
    let rows = joined.iter().filter_map(|(name, case, against)| {
        let floor = if name.probe == floor::TWIN { floor_without(&index, case) } else { floor };
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
    let adds = finite(stats::median(&rounds.all_differences())?);
    let ratio = stats::median(&rounds.all_ratios()).filter(|ratio| ratio.is_finite());
    let ratio_interval = ratio.and_then(|_| rounds.ratio_interval(confidence));
    let (verdict, why) = match (below_resolution(index, against), ratio_interval) {
        (Some(bound), _) => (
            Verdict::CannotTell,
            Some(format!("what it is held against is below {bound:.3} {}", against.unit)),
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

/// The median of case / against over the rounds that both kept; None where there is none.
pub(super) fn median_ratio(case: &Measured, against: &Measured) -> Option<f64> {
    stats::median(&Rounds::new(case, against).all_ratios())
}

/// The rounds that both cases kept.
struct Rounds {
    /// case / against where against is above zero, process by process.
    ratios: Vec<Vec<f64>>,
    /// Rounds in which it is not.
    without_ratio: usize,
    /// case - against, process by process.
    differences: Vec<Vec<f64>>,
}

impl Rounds {
    fn new(case: &Measured, against: &Measured) -> Self {
        let mut rounds = Self { ratios: Vec::new(), without_ratio: 0, differences: Vec::new() };
        for process in join(case, against) {
            let above_zero = process.iter().filter(|(_, against)| *against > 0.0);
            let ratios: Vec<f64> = above_zero.map(|(case, against)| case / against).collect();
            rounds.without_ratio += process.len() - ratios.len();
            rounds.ratios.push(ratios);
            rounds.differences.push(process.iter().map(|(case, against)| finite(case - against)).collect());
        }
        rounds
    }

    fn all_ratios(&self) -> Vec<f64> {
        self.ratios.concat()
    }

    fn all_differences(&self) -> Vec<f64> {
        self.differences.concat()
    }

    fn ratio_interval(&self, confidence: f64) -> Option<Interval> {
        let sorted = stats::sorted(&self.all_ratios());
        let rank = stats::sign_test_rank(sorted.len() + self.without_ratio, confidence)?;
        // The rounds without a ratio lie beyond whichever end is looked for.
        let inward = rank.checked_sub(self.without_ratio + 1)?;
        let outward = sorted.len().checked_sub(inward + 1)?;
        let of_rounds = Interval { low: sorted[inward], high: sorted[outward] };
        let interval = with_processes(of_rounds, &self.ratios);
        (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
    }

    fn adds_interval(&self, confidence: f64) -> Option<Interval> {
        let of_rounds = stats::median_interval(&self.all_differences(), confidence)?;
        Some(with_processes(of_rounds, &self.differences))
    }

    fn why_no_ratio(&self, confidence: f64) -> String {
        let with = self.ratios.iter().map(Vec::len).sum::<usize>();
        let all = with + self.without_ratio;
        if stats::sign_test_rank(all, confidence).is_none() {
            format!("only {all} rounds in common")
        } else if self.without_ratio > 0 {
            format!("what it is held against is not above zero in {} of {all} rounds", self.without_ratio)
        } else {
            "the ratio is too large to write down".to_owned()
        }
    }
}

fn with_processes(of_rounds: Interval, by_process: &[Vec<f64>]) -> Interval {
    /// The median of fewer rounds says little of a process.
    const ENOUGH: usize = 5;
    const CONFIDENCE: f64 = 0.99;
    let enough = by_process.iter().filter(|process| process.len() >= ENOUGH);
    let medians: Vec<f64> = enough.filter_map(|process| stats::median(process)).collect();
    let of_processes = stats::median_interval(&medians, CONFIDENCE).or_else(|| Interval::range(&medians));
    of_processes.map_or(of_rounds, |of_processes| of_rounds.hull(of_processes))
}

/// For every process that both have, the samples of the rounds that both kept.
fn join<'a>(case: &'a Measured, against: &'a Measured) -> impl Iterator<Item = Vec<(f64, f64)>> + use<'a> {
    numbered(case).zip(numbered(against)).map(|(case, against)| {
        let mut against = against.into_iter().peekable();
        let partners = case.into_iter().filter_map(|(round, case)| {
            while against.next_if(|(earlier, _)| *earlier < round).is_some() {}
            against.next_if(|(same, _)| *same == round).map(|(_, against)| (case, against))
        });
        partners.collect()
    })
}

/// [`Measured::rounds_of`] every process, in one pass.
fn numbered(measured: &Measured) -> impl Iterator<Item = Vec<(u32, f64)>> {
    measured
        .processes
        .iter()
        .zip(measured.by_process())
        .map(|(process, samples)| kept_rounds(process).zip(samples.iter().copied()).collect())
}

fn kept_rounds(process: &ProcessRounds) -> impl Iterator<Item = u32> {
    let mut dropped = process.dropped.iter().peekable();
    (0..process.rounds).filter(move |round| dropped.next_if_eq(&round).is_none())
}

fn finite(x: f64) -> f64 {
    x.clamp(-f64::MAX, f64::MAX)
}
