//! Comparisons of runs with a base, as JSON. With several others each list holds those of all, one run after the other.

use serde::Serialize;
use tollgate_model::compare::{FactDifference, NotCompared, Verdict};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, Effect, Environment, Label, Part, Run, RunId, Unit};

use super::alternating;
use super::need::{self, Need};
use crate::comparison::Comparison;
use crate::trace::blame::{self, Held};
use crate::versus;
use crate::versus::split::Split;

/// The document.
#[derive(Serialize)]
pub struct Document<'a> {
    base: Heading<'a>,
    others: Vec<Heading<'a>>,
    paired: bool,
    alternating: Option<String>,
    rows: Vec<Row<'a>>,
    only_base: Vec<Only<'a>>,
    only_other: Vec<Only<'a>>,
    not_compared: Vec<Apart<'a>>,
    facts: Vec<FactRecord<'a>>,
    traces: Vec<blame::Record<'a>>,
    /// What the differences of commands consist of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<OfCommands<'a>>,
}

#[derive(Serialize)]
struct Heading<'a> {
    id: &'a RunId,
    label: Option<&'a Label>,
    environment: Environment,
    session: Option<&'a Part>,
    started: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    other_run: &'a RunId,
    #[serde(flatten)]
    case: &'a Case,
    unit: Option<Unit>,
    base: Option<f64>,
    other: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    adds: Option<f64>,
    adds_low: Option<f64>,
    adds_high: Option<f64>,
    correlation: Option<f64>,
    narrowed: Option<f64>,
    pairs: Option<usize>,
    turns: Option<usize>,
    verdict: Verdict,
    threshold: f64,
    why: Option<&'a str>,
    causes: Vec<&'a str>,
    more_time: Option<String>,
}

#[derive(Serialize)]
struct Only<'a> {
    other_run: &'a RunId,
    #[serde(flatten)]
    case: &'a Case,
    why: &'a str,
}

/// A case that one side counted and the other timed.
#[derive(Serialize)]
struct Apart<'a> {
    other_run: &'a RunId,
    #[serde(flatten)]
    apart: &'a NotCompared,
}

#[derive(Serialize)]
struct FactRecord<'a> {
    other_run: &'a RunId,
    #[serde(flatten)]
    fact: &'a FactDifference,
    affects: Option<String>,
    proven: bool,
}

/// What the difference of two commands consists of.
#[derive(Serialize)]
struct OfCommands<'a> {
    other_run: &'a RunId,
    split: serde_json::Value,
}

/// The commands that both runs of each comparison traced.
pub fn traces<'a>(comparisons: &'a [Comparison<'a>]) -> Vec<(&'a RunId, Vec<Held<'a>>)> {
    comparisons.iter().map(|comparison| (&comparison.other.id, blame::of(comparison).collect())).collect()
}

impl<'a> Document<'a> {
    /// The document of comparisons with a base, and their [`traces`].
    pub fn of(
        base: &'a Run,
        comparisons: &'a [Comparison<'a>],
        traces: &'a [(&'a RunId, Vec<Held<'a>>)],
    ) -> Self {
        let apart = comparisons.iter().find(|comparison| !comparison.is_of_one_session());
        let traces = traces.iter().flat_map(|(id, traced)| traced.iter().map(|traced| traced.record(id)));
        Self {
            base: Heading::of(base),
            others: comparisons.iter().map(|comparison| Heading::of(comparison.other)).collect(),
            paired: !comparisons.is_empty() && comparisons.iter().all(|comparison| comparison.is_alternated),
            alternating: apart.map(|comparison| alternating::command(comparison.base, comparison.other)),
            rows: comparisons.iter().flat_map(Row::all).collect(),
            only_base: comparisons.iter().flat_map(|all| Only::all(all, &all.only_base)).collect(),
            only_other: comparisons.iter().flat_map(|all| Only::all(all, &all.only_other)).collect(),
            not_compared: comparisons.iter().flat_map(Apart::all).collect(),
            facts: comparisons.iter().flat_map(FactRecord::all).collect(),
            traces: traces.collect(),
            splits: comparisons.iter().filter_map(OfCommands::of).collect(),
        }
    }
}

impl<'a> OfCommands<'a> {
    fn of(comparison: &'a Comparison<'a>) -> Option<Self> {
        let split = comparison.is_of_commands().then(|| Split::of(comparison)).flatten()?;
        Some(Self { other_run: &comparison.other.id, split: versus::json::split(&split) })
    }
}

impl<'a> Heading<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            id: &run.id,
            label: run.label.as_ref(),
            environment: run.environment,
            session: run.session.as_ref(),
            started: &run.started,
        }
    }
}

/// The ends of an interval, where there is one.
pub(crate) fn ends(interval: Option<Interval>) -> (Option<f64>, Option<f64>) {
    interval.map(|interval| (interval.low, interval.high)).unzip()
}

impl<'a> Row<'a> {
    fn all(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Self> {
        comparison.rows.iter().map(|row| {
            let result = &row.result;
            let found = result.alternation.as_ref();
            let (ratio_low, ratio_high) = ends(result.interval);
            let (adds_low, adds_high) = ends(found.and_then(|found| found.adds_interval));
            Self {
                other_run: &comparison.other.id,
                case: &result.case,
                unit: row.unit(),
                base: result.base,
                other: result.other,
                ratio: row.ratio(),
                ratio_low,
                ratio_high,
                adds: row.adds(),
                adds_low,
                adds_high,
                correlation: found.and_then(|found| found.correlation),
                narrowed: found.and_then(|found| found.narrowed),
                pairs: found.map(|found| found.pairs),
                turns: found.map(|found| found.turns),
                verdict: result.verdict,
                threshold: result.threshold,
                why: result.why.as_deref(),
                causes: comparison.cause_names(row),
                more_time: Need::of(row).and_then(|need| need::command(comparison, [&need].into_iter())),
            }
        })
    }
}

impl<'a> Only<'a> {
    fn all(comparison: &'a Comparison<'a>, only: &'a [(Case, String)]) -> impl Iterator<Item = Self> {
        let other_run = &comparison.other.id;
        only.iter().map(move |(case, why)| Self { other_run, case, why })
    }
}

impl<'a> Apart<'a> {
    fn all(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Self> {
        comparison.not_compared.iter().map(|apart| Self { other_run: &comparison.other.id, apart })
    }
}

impl<'a> FactRecord<'a> {
    fn all(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Self> {
        comparison.facts.iter().map(|fact| Self {
            other_run: &comparison.other.id,
            fact,
            affects: tollgate_inspect::effect(&fact.name).map(Effect::to_string),
            proven: comparison.proven.as_ref().is_some_and(|proven| proven.facts.contains(&fact.name)),
        })
    }
}
