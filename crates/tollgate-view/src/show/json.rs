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
use crate::quality::{self, Quality};
use crate::rules::{self, Expense, Finding};
use crate::summary::{BASELINE, CaseRow, Summary};
use tollgate_trace::output::TracedCommand;

/// A run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ShownRun"))]
pub struct ShowDocument<'a> {
    /// Schema of the run document: 2.
    schema: u32,
    /// The program that made the run.
    tool: &'a Tool,
    /// Unique among kept runs; begins with the UTC time.
    id: &'a RunId,
    /// The user's name for it, or None.
    label: Option<&'a Label>,
    /// The innermost known layer.
    environment: Environment,
    /// Its part in a session, if the run belongs to a session of several environments. Absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a Part>,
    /// Time of the first measurement.
    started: &'a str,
    /// Time of the last one.
    finished: &'a str,
    /// The file in which this command kept the run, or None.
    kept: Option<String>,
    /// The benchmark that `multiple_of_syscall` is a multiple of: `entry/syscall`.
    baseline: &'static str,
    /// One object for each requested case, in the order of `list`.
    measurements: Vec<Measured<'a>>,
    /// The same objects for the engine's own benchmarks: `bench/empty-loop`, `bench/empty-loop-raw` (loop overhead),
    /// `bench/clock-pair` (timer overhead), `bench/canary` (the unit, briefly), `bench/control` (A/A control).
    bench: Vec<Measured<'a>>,
    /// Findings over several rows.
    findings: Vec<Finding>,
    /// How well the figures would be found again; `exact` for a run that counted instructions, with in how many rows.
    quality: Quality,
    /// Processes that something else slowed.
    disturbed: Share,
    /// Expensive operations here, the system call first, then by how far it is above what is usual.
    expensive: Vec<Expense>,
    /// Facts by name, see [facts](#facts).
    facts: &'a Facts,
    /// Sources of noise and error, and their remedies.
    warnings: Vec<Advice>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ShownCase"))]
struct Measured<'a> {
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "super::columns::schema::CaseFigures"))]
    figures: Record,
    /// One, or two if the samples are clearly bimodal.
    modes: &'a [Mode],
    /// The median of each fresh process, in order.
    processes: &'a [f64],
    /// The comparison with its baseline, round by round, or None.
    baseline: Option<Baseline<'a>>,
    /// Events that were counted in the kept batches, such as `minor faults`; None if nothing is counted. If events and operations
    /// of a batch differ, the case fails.
    counted: Option<&'a Counted>,
    /// Other events of all kept batches together, such as `context switches`; operations are `samples` times `ops_per_sample`.
    counters: &'a [Counter],
    /// One for each interface that counted events beside the time; empty if nothing was counted, and for whole commands.
    events: &'a [EventCounts],
    /// For a traced command: one object per sample, with the fields of [`trace`](#trace) from `command` on; otherwise None.
    traced: Option<Vec<TracedCommand<'a>>>,
}

/// The paired comparison of a case with its baseline.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedWithBaseline"))]
struct Baseline<'a> {
    #[serde(flatten)]
    case: &'a Case,
    /// This case over the other.
    ratio: f64,
    /// Lower end of its interval.
    ratio_low: Option<f64>,
    /// Upper end.
    ratio_high: Option<f64>,
    /// This case less the other, in `unit`.
    adds: f64,
    /// Lower end of its interval.
    adds_low: Option<f64>,
    /// Upper end.
    adds_high: Option<f64>,
    /// Verdict on the ratio.
    verdict: Verdict,
    /// Noise threshold, a relative difference: the larger of 1 % and the A/A difference.
    threshold: f64,
    /// Why it is inconclusive.
    why: Option<&'a str>,
}

impl<'a> ShowDocument<'a> {
    /// The document of a run, and the file in which it is kept.
    pub fn new(summary: &'a Summary, kept: Option<&Path>) -> Self {
        let run = summary.run;
        let records = |rows: &'a [CaseRow]| rows.iter().map(|row| Measured::new(row, summary)).collect();
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
            findings: rules::findings(summary),
            quality: quality::of(summary),
            disturbed: summary.disturbance.share(),
            expensive: rules::expenses(summary),
            facts: &run.facts,
            warnings: advice::of(summary),
        }
    }
}

impl<'a> Measured<'a> {
    fn new(row: &'a CaseRow, summary: &'a Summary) -> Self {
        let figures = row.figures();
        let (measured, estimate) = figures.map(|figures| (&*figures.measured, &figures.estimate)).unzip();
        let traced = measured.map(|measured| measured.divided()).filter(|traced| !traced.is_empty());
        Self {
            figures: Record::from_row(&of_object(), &Shown::new(summary, row)),
            modes: estimate.map_or(&[], |estimate| &estimate.modes),
            processes: estimate.map_or(&[], |estimate| &estimate.process_medians),
            baseline: figures.and_then(|figures| figures.paired.as_ref()).map(Baseline::of),
            counted: measured.and_then(|measured| measured.counted.as_ref()),
            counters: measured.map_or(&[], |measured| &measured.counters),
            events: measured.map_or(&[], |measured| &measured.events),
            traced: traced.map(|traced| traced.iter().map(TracedCommand::of).collect()),
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
