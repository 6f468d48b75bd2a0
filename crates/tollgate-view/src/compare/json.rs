//! Comparisons of runs with a base, as JSON. With several others each list holds those of all, one run after the other.

use serde::Serialize;
use tollgate_model::compare::{FactDifference, Verdict};
use tollgate_model::stats::Interval;
use tollgate_model::{Case, Effect, Environment, Label, Run, RunId, Unit};

use super::need::{self, Need};
use crate::comparison::Comparison;
use crate::trace::blame::{self, Held};

/// The document.
#[derive(Serialize)]
pub struct Document<'a> {
    base: Heading<'a>,
    others: Vec<Heading<'a>>,
    paired: bool,
    rows: Vec<Row<'a>>,
    only_base: Vec<Only<'a>>,
    only_other: Vec<Only<'a>>,
    facts: Vec<FactRecord<'a>>,
    traces: Vec<blame::Record<'a>>,
}

#[derive(Serialize)]
struct Heading<'a> {
    id: &'a RunId,
    label: Option<&'a Label>,
    environment: Environment,
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

#[derive(Serialize)]
struct FactRecord<'a> {
    other_run: &'a RunId,
    #[serde(flatten)]
    fact: &'a FactDifference,
    affects: Option<String>,
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
        let traces = traces.iter().flat_map(|(id, traced)| traced.iter().map(|traced| traced.record(id)));
        Self {
            base: Heading::of(base),
            others: comparisons.iter().map(|comparison| Heading::of(comparison.other)).collect(),
            paired: false,
            rows: comparisons.iter().flat_map(Row::all).collect(),
            only_base: comparisons.iter().flat_map(|all| Only::all(all, &all.only_base)).collect(),
            only_other: comparisons.iter().flat_map(|all| Only::all(all, &all.only_other)).collect(),
            facts: comparisons.iter().flat_map(FactRecord::all).collect(),
            traces: traces.collect(),
        }
    }
}

impl<'a> Heading<'a> {
    fn of(run: &'a Run) -> Self {
        Self { id: &run.id, label: run.label.as_ref(), environment: run.environment, started: &run.started }
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
            let (ratio_low, ratio_high) = ends(result.interval);
            Self {
                other_run: &comparison.other.id,
                case: &result.case,
                unit: row.unit(),
                base: result.base,
                other: result.other,
                ratio: row.ratio(),
                ratio_low,
                ratio_high,
                verdict: result.verdict,
                threshold: result.threshold,
                why: result.why.as_deref(),
                causes: match result.verdict.is_difference() {
                    true => comparison.causes(row).map(|fact| fact.name.as_str()).collect(),
                    false => Vec::new(),
                },
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

impl<'a> FactRecord<'a> {
    fn all(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Self> {
        comparison.facts.iter().map(|fact| Self {
            other_run: &comparison.other.id,
            fact,
            affects: tollgate_inspect::effect(&fact.name).map(Effect::to_string),
        })
    }
}
