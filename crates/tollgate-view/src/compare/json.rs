//! Comparisons of runs with a base, as JSON. With several others each list holds those of all, one run after the other.

use serde::Serialize;
use tollgate_model::compare::Verdict;
use tollgate_model::{Case, Effect, Environment, Fact, Label, Params, Run, RunId, Unit};

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
    benchmark: &'a str,
    params: &'a Params,
    unit: Option<Unit>,
    base: Option<f64>,
    other: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    verdict: Verdict,
    threshold: f64,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct Only<'a> {
    other_run: &'a RunId,
    benchmark: &'a str,
    params: &'a Params,
    why: &'a str,
}

#[derive(Serialize)]
struct FactRecord<'a> {
    other_run: &'a RunId,
    name: &'a str,
    base: Option<&'a Fact>,
    other: Option<&'a Fact>,
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

impl<'a> Row<'a> {
    fn all(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Self> {
        comparison.rows.iter().map(|row| {
            let result = &row.result;
            Self {
                other_run: &comparison.other.id,
                benchmark: &result.case.benchmark,
                params: &result.case.params,
                unit: row.unit(),
                base: result.base,
                other: result.other,
                ratio: row.ratio(),
                ratio_low: result.interval.map(|interval| interval.low),
                ratio_high: result.interval.map(|interval| interval.high),
                verdict: result.verdict,
                threshold: result.threshold,
                why: result.why.as_deref(),
            }
        })
    }
}

impl<'a> Only<'a> {
    fn all(comparison: &'a Comparison<'a>, only: &'a [(Case, String)]) -> impl Iterator<Item = Self> {
        let other_run = &comparison.other.id;
        only.iter().map(move |(case, why)| Self {
            other_run,
            benchmark: &case.benchmark,
            params: &case.params,
            why,
        })
    }
}

impl<'a> FactRecord<'a> {
    fn all(comparison: &'a Comparison<'a>) -> impl Iterator<Item = Self> {
        comparison.facts.iter().map(|fact| Self {
            other_run: &comparison.other.id,
            name: &fact.name,
            base: fact.base.as_ref(),
            other: fact.other.as_ref(),
            affects: tollgate_inspect::effect(&fact.name).map(Effect::to_string),
        })
    }
}
