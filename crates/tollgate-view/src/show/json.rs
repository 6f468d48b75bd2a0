//! A run as JSON. Every field is always there; null is unknown or does not apply.

use std::path::Path;

use serde::Serialize;
use tollgate_model::compare::{Paired, Verdict};
use tollgate_model::disturbance::Share;
use tollgate_model::measurement::Status;
use tollgate_model::run::Tool;
use tollgate_model::stats::Mode;
use tollgate_model::{
    Case, Counted, Counter, Environment, EventCounts, Facts, Label, Part, Provenance, RunId, Unit,
};

use super::cycles;
use crate::advice::{self, Advice};
use crate::compare::json::ends;
use crate::expensive::{self, Expense};
use crate::findings::{self, Finding};
use crate::quality::{self, Quality};
use crate::summary::{BASELINE, Figures, Row, State, Summary};
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
    measurements: Vec<Record<'a>>,
    bench: Vec<Record<'a>>,
    findings: Vec<Finding>,
    quality: Quality,
    disturbed: Share,
    expensive: Vec<Expense>,
    facts: &'a Facts,
    warnings: Vec<Advice>,
}

#[derive(Serialize)]
struct Record<'a> {
    #[serde(flatten)]
    case: &'a Case,
    status: &'static str,
    unit: Option<Unit>,
    median: Option<f64>,
    median_cycles: Option<f64>,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    min: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    samples: usize,
    discarded: u64,
    detection_limit: Option<f64>,
    multiple_of_syscall: Option<f64>,
    modes: &'a [Mode],
    processes: &'a [f64],
    spread: Option<f64>,
    baseline: Option<Baseline<'a>>,
    noisy: bool,
    /// Of a count of instructions, whether every batch has it.
    exact: Option<bool>,
    why: Option<&'a str>,
    error: Option<&'a str>,
    counted: Option<&'a Counted>,
    counters: &'a [Counter],
    events: &'a [EventCounts],
    notes: &'a [String],
    provenance: Option<Provenance>,
    ops_per_sample: Option<u64>,
    bytes_per_op: Option<u64>,
    bytes_per_second: Option<f64>,
    group: Option<&'a str>,
    traced: Option<Vec<trace::Record<'a>>>,
}

/// The paired comparison of a [`Record`] with its baseline.
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
        let records = |rows: &'a [Row]| rows.iter().map(|row| Record::of(row, summary)).collect();
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

impl<'a> Record<'a> {
    fn of(row: &'a Row, summary: &Summary) -> Self {
        let figures = row.figures();
        let (measured, estimate) = figures.map(|figures| (&*figures.measured, &figures.estimate)).unzip();
        let traced = measured.map(|measured| &measured.traced).filter(|traced| !traced.is_empty());
        let interval = estimate.and_then(|estimate| estimate.interval);
        let is_failed = matches!(row.state, State::Without(Status::Failed, _));
        Self {
            case: row.case,
            status: row.status(),
            unit: measured.map(|measured| measured.unit),
            median: estimate.map(|estimate| estimate.median),
            median_cycles: figures.and_then(|figures| cycles(figures, summary)),
            ci_low: interval.map(|interval| interval.low),
            ci_high: interval.map(|interval| interval.high),
            min: figures.and_then(Figures::min),
            p99: estimate.and_then(|estimate| estimate.p99),
            max: estimate.map(|estimate| estimate.max),
            samples: estimate.map_or(0, |estimate| estimate.samples),
            discarded: measured.map_or(0, |measured| measured.discarded),
            detection_limit: figures.and_then(|figures| figures.below),
            multiple_of_syscall: figures.and_then(|figures| figures.multiple),
            modes: estimate.map_or(&[], |estimate| &estimate.modes),
            processes: estimate.map_or(&[], |estimate| &estimate.process_medians),
            spread: estimate.map(|estimate| estimate.spread),
            baseline: figures.and_then(|figures| figures.paired.as_ref()).map(Baseline::of),
            noisy: row.is_noisy(),
            exact: figures.filter(|figures| figures.is_count()).map(|figures| figures.is_exact()),
            why: row.why().filter(|_| !is_failed),
            error: row.why().filter(|_| is_failed),
            counted: measured.and_then(|measured| measured.counted.as_ref()),
            counters: measured.map_or(&[], |measured| &measured.counters),
            events: measured.map_or(&[], |measured| &measured.events),
            notes: measured.map_or(&[], |measured| &measured.notes),
            provenance: measured.map(|measured| measured.provenance),
            ops_per_sample: measured.map(|measured| measured.ops_per_sample),
            bytes_per_op: measured.and_then(|measured| measured.bytes_per_op),
            bytes_per_second: figures.and_then(|figures| figures.bytes_per_second()),
            group: measured.map(|measured| measured.group.as_str()),
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
