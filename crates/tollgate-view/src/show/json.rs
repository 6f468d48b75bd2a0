//! A run as JSON. Every field is always there; null is unknown or does not apply.

use std::path::Path;

use serde::Serialize;
use tollgate_model::compare::{Paired, Verdict};
use tollgate_model::disturbance::Share;
use tollgate_model::run::Tool;
use tollgate_model::stats::Mode;
use tollgate_model::{Case, Counted, Counter, Environment, EventCounts, Facts, Label, Part, RunId};
use tollgate_output::json::Record;

use super::columns::{Shown, of_object};
use crate::advice::{self, Advice};
use crate::compare::json::ends;
use crate::expensive::{self, Expense};
use crate::findings::{self, Finding};
use crate::quality::{self, Quality};
use crate::summary::{BASELINE, Row, Summary};
use crate::trace;

/// A run.
#[derive(Serialize)]
pub struct Document<'a> {
    schema: u32,
    tool: &'a Tool,
    id: &'a RunId,
    label: Option<&'a Label>,
    environment: Environment,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a Part>,
    started: &'a str,
    finished: &'a str,
    kept: Option<String>,
    baseline: &'static str,
    measurements: Vec<Measured<'a>>,
    bench: Vec<Measured<'a>>,
    findings: Vec<Finding>,
    quality: Quality,
    disturbed: Share,
    expensive: Vec<Expense>,
    facts: &'a Facts,
    warnings: Vec<Advice>,
}

#[derive(Serialize)]
struct Measured<'a> {
    #[serde(flatten)]
    figures: Record,
    modes: &'a [Mode],
    processes: &'a [f64],
    baseline: Option<Baseline<'a>>,
    counted: Option<&'a Counted>,
    counters: &'a [Counter],
    events: &'a [EventCounts],
    traced: Option<Vec<trace::Record<'a>>>,
}

/// The paired comparison of a case with its baseline.
#[derive(Serialize)]
struct Baseline<'a> {
    #[serde(flatten)]
    case: &'a Case,
    ratio: f64,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    adds: f64,
    adds_low: Option<f64>,
    adds_high: Option<f64>,
    verdict: Verdict,
    threshold: f64,
    why: Option<&'a str>,
}

impl<'a> Document<'a> {
    /// The document of a run, and the file in which it is kept.
    pub fn of(summary: &'a Summary, kept: Option<&Path>) -> Self {
        let run = summary.run;
        let records = |rows: &'a [Row]| rows.iter().map(|row| Measured::of(row, summary)).collect();
        Self {
            schema: run.schema,
            tool: &run.tool,
            id: &run.id,
            label: run.label.as_ref(),
            environment: run.environment,
            session: run.session.as_ref(),
            started: &run.started,
            finished: &run.finished,
            kept: kept.map(|path| path.display().to_string()),
            baseline: BASELINE,
            measurements: records(&summary.rows),
            bench: records(&summary.own),
            findings: findings::of(summary),
            quality: quality::of(summary),
            disturbed: summary.disturbance.share(),
            expensive: expensive::of(summary),
            facts: &run.facts,
            warnings: advice::of(summary),
        }
    }
}

impl<'a> Measured<'a> {
    fn of(row: &'a Row, summary: &'a Summary) -> Self {
        let figures = row.figures();
        let (measured, estimate) = figures.map(|figures| (&*figures.measured, &figures.estimate)).unzip();
        let traced = measured.map(|measured| &measured.traced).filter(|traced| !traced.is_empty());
        Self {
            figures: Record::of(&of_object(), &Shown::of(summary, row)),
            modes: estimate.map_or(&[], |estimate| &estimate.modes),
            processes: estimate.map_or(&[], |estimate| &estimate.process_medians),
            baseline: figures.and_then(|figures| figures.paired.as_ref()).map(Baseline::of),
            counted: measured.and_then(|measured| measured.counted.as_ref()),
            counters: measured.map_or(&[], |measured| &measured.counters),
            events: measured.map_or(&[], |measured| &measured.events),
            traced: traced.map(|traced| traced.iter().map(trace::Record::of).collect()),
        }
    }
}

impl<'a> Baseline<'a> {
    fn of(paired: &'a Paired) -> Self {
        let (ratio_low, ratio_high) = ends(paired.ratio_interval);
        let (adds_low, adds_high) = ends(paired.adds_interval);
        Self {
            case: &paired.baseline,
            ratio: paired.ratio,
            ratio_low,
            ratio_high,
            adds: paired.adds,
            adds_low,
            adds_high,
            verdict: paired.verdict,
            threshold: paired.threshold,
            why: paired.why.as_deref(),
        }
    }
}
