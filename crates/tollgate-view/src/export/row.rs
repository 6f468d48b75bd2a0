//! The long form: a line of JSON for each run and metric. Each line has all columns, so that most queries need no second file.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use tollgate_model::measurement::Status;
use tollgate_model::text::shorten;
use tollgate_model::{Environment, Provenance, Run, Unit};

use super::environment::{KeyFacts, machine};
use super::facts::env_id;
use super::histogram::{Histogram, SCALE};
use super::metric::metrics;
use super::session::InSession;
use super::short;
use crate::summary::{Figures, Summary};

/// The schema of the lines, and of the directory that they are kept in.
pub const SCHEMA: u32 = 2;

/// A line. Field order is the columns' order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedRow<'a> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The run's id.
    pub run: Cow<'a, str>,
    /// The user's name for the run.
    pub label: Option<Cow<'a, str>>,
    /// The user's name for the machine.
    pub machine: Option<Cow<'a, str>>,
    /// Names the file of the environment; equal machines have the same.
    pub env_id: Cow<'a, str>,
    /// The kind of environment.
    pub environment: Environment,
    /// RFC 3339, UTC.
    pub started: Cow<'a, str>,
    /// Version of the program that made the run.
    pub version: Cow<'a, str>,
    /// The key facts.
    #[serde(flatten)]
    pub key_facts: Cow<'a, KeyFacts>,
    /// Only for a run that is part of a session.
    #[serde(flatten)]
    pub session: Option<Cow<'a, InSession>>,
    /// Such as `entry`.
    pub suite: Cow<'a, str>,
    /// Such as `entry/syscall`.
    pub benchmark: Cow<'a, str>,
    /// `name=value,…`.
    pub params: Cow<'a, str>,
    /// `latency`, `size`, `instructions`, or a part of a command's time.
    pub metric: Cow<'a, str>,
    /// `measured`, `skipped` or `failed`.
    pub status: Cow<'a, str>,
    /// Why it has no figures.
    pub why: Option<Cow<'a, str>>,
    /// Unit of all figures.
    pub unit: Option<Unit>,
    /// The executor of the code.
    pub provenance: Option<Provenance>,
    /// The estimate.
    pub median: Option<f64>,
    /// The lower end of its 95 % CI.
    pub ci_low: Option<f64>,
    /// The upper end.
    pub ci_high: Option<f64>,
    /// The smallest sample.
    pub min: Option<f64>,
    /// 99 % of this run's samples are at or below it.
    pub p99: Option<f64>,
    /// The largest sample.
    pub max: Option<f64>,
    /// The bound of a value below the detection limit.
    pub detection_limit: Option<f64>,
    /// The number of samples.
    pub count: u64,
    /// Discarded batches.
    pub discarded: u64,
    /// 5.
    pub hist_scale: u32,
    /// Samples of zero or less.
    pub hist_zero: u64,
    /// The number of the first bucket.
    pub hist_offset: i32,
    /// Samples by bucket.
    pub hist_counts: Cow<'a, [u64]>,
}

/// The lines of a run.
///
/// # Errors
/// Only by a defect of the program: every row converts to JSON.
pub fn ndjson(run: &Run) -> Result<String, serde_json::Error> {
    let facts = &run.facts;
    // The columns that all lines of a run share.
    let (machine, env_id, key_facts) = (machine(facts), env_id(facts), KeyFacts::of(facts));
    let session = InSession::of(run);
    let mut text = String::new();
    for metric in &metrics(&Summary::of(run)) {
        let figures = metric.figures;
        let (measured, estimate) = figures.map(|figures| (&*figures.measured, &figures.estimate)).unzip();
        let histogram = measured.map(|measured| Histogram::of(&measured.samples)).unwrap_or_default();
        let row = ExportedRow {
            schema: SCHEMA,
            run: run.id.as_ref().into(),
            label: run.label.as_ref().map(|label| label.as_ref().into()),
            machine: machine.as_deref().map(Cow::Borrowed),
            env_id: env_id.as_str().into(),
            environment: run.environment,
            started: run.started.as_str().into(),
            version: run.tool.version.as_str().into(),
            key_facts: Cow::Borrowed(&key_facts),
            session: session.as_ref().map(Cow::Borrowed),
            suite: metric.case.suite().into(),
            benchmark: metric.case.benchmark.as_str().into(),
            params: metric.params.as_str().into(),
            metric: metric.name.into(),
            status: metric.status().into(),
            why: metric.why().map(|why| short(why).into()),
            unit: measured.map(|measured| measured.unit),
            provenance: measured.map(|measured| measured.provenance),
            median: estimate.map(|estimate| estimate.median),
            ci_low: estimate.and_then(|estimate| Some(estimate.interval?.low)),
            ci_high: estimate.and_then(|estimate| Some(estimate.interval?.high)),
            min: figures.and_then(Figures::min),
            p99: estimate.and_then(|estimate| estimate.p99),
            max: estimate.map(|estimate| estimate.max),
            detection_limit: figures.and_then(|figures| figures.below),
            count: histogram.count(),
            discarded: measured.map_or(0, |measured| measured.discarded),
            hist_scale: SCALE,
            hist_zero: histogram.zero,
            hist_offset: histogram.offset,
            hist_counts: histogram.counts.into(),
        };
        text.push_str(&serde_json::to_string(&row)?);
        text.push('\n');
    }
    Ok(text)
}

impl ExportedRow<'_> {
    /// Reads an untrusted line.
    ///
    /// # Errors
    /// The fault: the predicate of a sentence whose subject is the line.
    pub fn parse(line: &str) -> Result<ExportedRow<'static>, String> {
        #[derive(Deserialize)]
        struct Header {
            schema: u64,
        }
        let wrong = |error: serde_json::Error| {
            let text = error.to_string();
            let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
            format!("is not a row: {}", shorten(what))
        };
        let header: Header = serde_json::from_str(line).map_err(wrong)?;
        if header.schema != u64::from(SCHEMA) {
            return Err(format!("has schema {}, but this tollgate reads schema {SCHEMA}", header.schema));
        }
        let row: ExportedRow<'static> = serde_json::from_str(line).map_err(wrong)?;
        let (zero, offset, counts) = (row.hist_zero, row.hist_offset, row.hist_counts.to_vec());
        let histogram = Histogram { zero, offset, counts };
        if row.hist_scale != SCALE || !histogram.is_sound() || histogram.count() != row.count {
            return Err("has a histogram that does not match its samples".to_owned());
        }
        let measured = row.status == Status::Measured.name();
        let of_all = [row.median, row.max].iter().all(|figure| figure.is_some() == measured);
        // An interval and a p99 need more than one sample, and a difference below zero is not a minimum.
        let of_many =
            [row.ci_low, row.ci_high, row.min, row.p99].iter().all(|figure| measured || figure.is_none());
        let is_interval = row.ci_low.is_some() == row.ci_high.is_some();
        if !of_all || !of_many || !is_interval || (row.count > 0) != measured {
            return Err("has figures that contradict its status".to_owned());
        }
        Ok(row)
    }
}
