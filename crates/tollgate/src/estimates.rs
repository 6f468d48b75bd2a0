//! The figures of a run, computed once from its samples for the table, JSON and CSV of `run` and `show`, and for the warnings.

use std::collections::HashMap;

use serde::Serialize;
use tollgate_model::compare::{Paired, Verdict, paired_rows};
use tollgate_model::estimate::{ENOUGH_PROCESSES, Estimate, Reading, detection_limit, reading};
use tollgate_model::stats::Mode;
use tollgate_model::{
    Case, Counted, Counter, Measured, Measurement, Outcome, Params, Provenance, Run, Unit, own,
};

use crate::{facts, trace};

/// The benchmark whose median the others are multiples of.
pub const BASELINE: &str = "entry/syscall";

/// A row with a larger share of its samples discarded is noisy.
const MANY_DISCARDED: f64 = 0.05;
/// A row whose interval reaches further than this share of its median is noisy.
const WIDE: f64 = 0.10;

/// The figures of a run.
pub struct Estimates<'a> {
    /// Every case that was asked for, in the document's order.
    pub rows: Vec<Row<'a>>,
    /// The engine's own measurements.
    pub own: Vec<Row<'a>>,
}

/// A case and what became of it.
pub struct Row<'a> {
    /// The case that was asked for.
    pub case: &'a Case,
    /// Its outcome.
    pub state: State<'a>,
}

/// The outcome of a case.
pub enum State<'a> {
    /// It has a median, or is below the detection limit.
    Measured(Box<Figures<'a>>),
    /// It cannot exist here.
    Skipped(&'a str),
    /// It went wrong.
    Failed(&'a str),
}

/// Everything that the samples of one case say.
pub struct Figures<'a> {
    /// The samples.
    pub measured: &'a Measured,
    /// Its median, interval and the rest.
    pub estimate: Estimate,
    /// The detection limit, in the unit of the samples, where the median is below it.
    pub below: Option<f64>,
    /// Its median as a multiple of [`BASELINE`]'s.
    pub multiple: Option<f64>,
    /// Compared with its baseline, round by round.
    pub paired: Option<Paired>,
}

impl<'a> Estimates<'a> {
    /// Summarizes the samples of a run.
    pub fn of(run: &'a Run) -> Self {
        let mut paired: HashMap<Case, Paired> = paired_rows(run).into_iter().collect();
        let baseline = run.measurement(&Case::plain(BASELINE)).and_then(|plain| estimate_in_time(plain, run));
        let look = |measurement: &'a Measurement| {
            let case = &measurement.case;
            let state = match &measurement.outcome {
                Outcome::Skipped { why } => State::Skipped(why),
                Outcome::Failed { error } => State::Failed(error),
                Outcome::Measured(measured) => match Figures::of(measured, run) {
                    None => State::Failed("it has no samples"),
                    Some(mut figures) => {
                        figures.paired = paired.remove(case);
                        figures.multiple = baseline.and_then(|baseline| figures.multiple_of(baseline));
                        State::Measured(Box::new(figures))
                    }
                },
            };
            Row { case, state }
        };
        let (own, rows) = run
            .measurements
            .iter()
            .map(look)
            .partition(|row: &Row| row.case.benchmark.starts_with(own::SUITE));
        Self { rows, own }
    }

    /// The measured rows.
    pub fn measured(&self) -> impl Iterator<Item = (&'a Case, &Figures<'a>)> {
        self.rows.iter().filter_map(|row| Some((row.case, row.figures()?)))
    }

    /// Why a benchmark that was asked for was not measured.
    pub fn reason(&self, benchmark: &str) -> Option<&'a str> {
        self.rows.iter().filter(|row| row.case.benchmark == benchmark).find_map(|row| match row.state {
            State::Skipped(why) => Some(why),
            State::Failed(error) => Some(error),
            State::Measured(_) => None,
        })
    }

    /// The engine's own measurement `benchmark` in `group`.
    pub fn own(&self, benchmark: &str, group: &str) -> Option<&Figures<'a>> {
        let of_group = |figures: &&Figures| figures.measured.group == group;
        self.own.iter().filter(|row| row.case.benchmark == benchmark).filter_map(Row::figures).find(of_group)
    }

    /// The groups whose rounds were run, in order.
    pub fn groups(&self) -> Vec<&'a str> {
        let mut groups: Vec<&str> = Vec::new();
        for (_, figures) in self.measured() {
            if !groups.contains(&figures.measured.group.as_str()) {
                groups.push(&figures.measured.group);
            }
        }
        groups
    }

    /// The detection limits of a group's rows: the smallest and the largest.
    pub fn detection_limits(&self, group: &str) -> Option<(f64, f64)> {
        let null = self.own(own::EMPTY_LOOP, group)?.measured;
        let of_group = self.measured().filter(|(_, figures)| figures.measured.group == group);
        let limits: Vec<f64> = of_group.map(|(_, figures)| detection_limit(null, figures.measured)).collect();
        let smallest = limits.iter().copied().min_by(f64::total_cmp)?;
        Some((smallest, limits.into_iter().max_by(f64::total_cmp)?))
    }
}

impl<'a> Row<'a> {
    /// Its figures, where it was measured.
    pub fn figures(&self) -> Option<&Figures<'a>> {
        match &self.state {
            State::Measured(figures) => Some(figures),
            State::Skipped(_) | State::Failed(_) => None,
        }
    }
}

impl<'a> Figures<'a> {
    fn of(measured: &'a Measured, run: &Run) -> Option<Self> {
        let (estimate, below) = match reading(measured, run)? {
            Reading::Estimate(estimate) => (estimate, None),
            Reading::BelowLimit(limit) => (Estimate::of(measured)?, Some(limit)),
        };
        Some(Self { measured, estimate, below, multiple: None, paired: None })
    }

    fn multiple_of(&self, baseline: f64) -> Option<f64> {
        // A whole command is no multiple of a call.
        let is_command = !self.measured.traced.is_empty();
        let comparable = self.measured.unit == Unit::Nanoseconds
            && self.below.is_none()
            && self.is_estimate()
            && !is_command;
        comparable.then_some(self.estimate.median / baseline).filter(|multiple| multiple.is_finite())
    }

    /// The throughput in bytes per second.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let nanoseconds = match self.measured.unit {
            Unit::Nanoseconds if self.below.is_none() => self.estimate.median,
            _ => return None,
        };
        let bytes = self.measured.bytes_per_op? as f64;
        Some(bytes * 1e9 / nanoseconds).filter(|rate| rate.is_finite() && *rate > 0.0)
    }

    /// [`is_estimate`] of what was measured.
    pub fn is_estimate(&self) -> bool {
        is_estimate(self.measured)
    }

    /// The reasons why this figure is noisy.
    pub fn doubts(&self) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        if self.estimate.discarded_share > MANY_DISCARDED {
            doubts.push(Doubt::ManyDiscarded(self.estimate.discarded_share));
        }
        if self.below.is_none() && self.estimate.relative_half_width() > WIDE {
            doubts.push(Doubt::Wide(self.estimate.relative_half_width()));
        }
        let processes = self.estimate.process_medians.len();
        if self.below.is_none() && processes < ENOUGH_PROCESSES {
            doubts.push(Doubt::FewProcesses(processes));
        }
        doubts
    }
}

/// Why a row is noisy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Doubt {
    /// This share of its samples was discarded.
    ManyDiscarded(f64),
    /// Its interval reaches this share of the median to either side.
    Wide(f64),
    /// Only this many processes measured it: its interval does not cover the range across processes.
    FewProcesses(usize),
}

/// Whether hardware executed what was timed: an emulator's times are no latencies.
pub fn is_estimate(measured: &Measured) -> bool {
    matches!(measured.provenance, Provenance::Hardware | Provenance::Kvm)
        || !matches!(measured.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine)
}

fn estimate_in_time(measurement: &Measurement, run: &Run) -> Option<f64> {
    let Outcome::Measured(measured) = &measurement.outcome else { return None };
    match reading(measured, run)? {
        Reading::Estimate(estimate) if measured.unit == Unit::Nanoseconds && estimate.median > 0.0 => {
            Some(estimate.median)
        }
        _ => None,
    }
}

/// One measurement as JSON and CSV show it. Every field is always there; null is unknown or does not apply.
#[derive(Debug, Default, Serialize)]
pub struct Record<'a> {
    benchmark: &'a str,
    params: Params,
    status: &'static str,
    unit: Option<Unit>,
    median: Option<f64>,
    median_cycles: Option<f64>,
    ci_low: Option<f64>,
    ci_high: Option<f64>,
    min: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    samples: u64,
    discarded: u64,
    detection_limit: Option<f64>,
    multiple_of_syscall: Option<f64>,
    modes: Vec<Mode>,
    processes: Vec<f64>,
    spread: Option<f64>,
    baseline: Option<Baseline>,
    noisy: bool,
    why: Option<&'a str>,
    error: Option<&'a str>,
    counted: Option<&'a Counted>,
    counters: &'a [Counter],
    notes: &'a [String],
    provenance: Option<Provenance>,
    ops_per_sample: Option<u64>,
    bytes_per_op: Option<u64>,
    bytes_per_second: Option<f64>,
    group: Option<&'a str>,
    traced: Option<Vec<trace::Record<'a>>>,
}

/// The paired comparison of a [`Record`] with its baseline.
#[derive(Debug, Serialize)]
struct Baseline {
    benchmark: String,
    params: Params,
    ratio: f64,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    adds: f64,
    adds_low: Option<f64>,
    adds_high: Option<f64>,
    verdict: Verdict,
    threshold: f64,
    why: Option<String>,
}

impl<'a> Record<'a> {
    /// The record of a row of `run`.
    pub fn of(row: &'a Row<'a>, run: &Run) -> Self {
        let asked =
            Self { benchmark: &row.case.benchmark, params: row.case.params.clone(), ..Self::default() };
        match &row.state {
            State::Skipped(why) => Self { status: "skipped", why: Some(why), ..asked },
            State::Failed(error) => Self { status: "failed", error: Some(error), ..asked },
            State::Measured(figures) => {
                let (measured, estimate) = (figures.measured, &figures.estimate);
                let nanoseconds = measured.unit == Unit::Nanoseconds && facts::clock_is_tsc(&run.facts);
                let hz = measured.clock_hz as f64;
                Self {
                    status: "measured",
                    unit: Some(measured.unit),
                    median: Some(estimate.median),
                    median_cycles: nanoseconds.then_some(estimate.median * hz / 1e9),
                    ci_low: Some(estimate.interval.low),
                    ci_high: Some(estimate.interval.high),
                    min: Some(estimate.min),
                    p99: Some(estimate.p99),
                    max: Some(estimate.max),
                    samples: measured.samples.len() as u64,
                    discarded: measured.discarded,
                    detection_limit: figures.below,
                    multiple_of_syscall: figures.multiple,
                    modes: estimate.modes.clone(),
                    processes: estimate.process_medians.clone(),
                    spread: Some(estimate.spread),
                    baseline: figures.paired.as_ref().map(Baseline::of),
                    noisy: !figures.doubts().is_empty(),
                    counted: measured.counted.as_ref(),
                    counters: &measured.counters,
                    notes: &measured.notes,
                    provenance: Some(measured.provenance),
                    ops_per_sample: Some(measured.ops_per_sample),
                    bytes_per_op: measured.bytes_per_op,
                    bytes_per_second: figures.bytes_per_second(),
                    group: Some(&measured.group),
                    traced: (!measured.traced.is_empty())
                        .then(|| measured.traced.iter().map(trace::Record::of).collect()),
                    ..asked
                }
            }
        }
    }

    /// The columns of [`Record::csv_fields`].
    pub const CSV_HEADER: [&'static str; 25] = [
        "benchmark",
        "params",
        "status",
        "unit",
        "median",
        "median_cycles",
        "ci_low",
        "ci_high",
        "min",
        "samples",
        "discarded",
        "detection_limit",
        "multiple_of_syscall",
        "spread",
        "baseline",
        "ratio",
        "adds",
        "verdict",
        "noisy",
        "why",
        "notes",
        "counted",
        "p99",
        "max",
        "bytes_per_second",
    ];

    /// One line of a table for spreadsheets; what is unknown is empty.
    pub fn csv_fields(&self) -> [String; 25] {
        let number = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
        let params: Vec<String> = self.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let baseline = self.baseline.as_ref();
        [
            self.benchmark.to_owned(),
            params.join(" "),
            self.status.to_owned(),
            self.unit.map(|unit| unit.to_string()).unwrap_or_default(),
            number(self.median),
            number(self.median_cycles),
            number(self.ci_low),
            number(self.ci_high),
            number(self.min),
            self.samples.to_string(),
            self.discarded.to_string(),
            number(self.detection_limit),
            number(self.multiple_of_syscall),
            number(self.spread),
            baseline.map(|baseline| baseline.benchmark.clone()).unwrap_or_default(),
            number(baseline.map(|baseline| baseline.ratio)),
            number(baseline.map(|baseline| baseline.adds)),
            baseline.map(|baseline| baseline.verdict.to_string()).unwrap_or_default(),
            self.noisy.to_string(),
            self.why.or(self.error).unwrap_or_default().to_owned(),
            self.notes.join("; "),
            self.counted.map(|counted| format!("{} {}", counted.events, counted.what)).unwrap_or_default(),
            number(self.p99),
            number(self.max),
            number(self.bytes_per_second),
        ]
    }
}

impl Baseline {
    fn of(paired: &Paired) -> Self {
        Self {
            benchmark: paired.baseline.benchmark.clone(),
            params: paired.baseline.params.clone(),
            ratio: paired.ratio,
            ratio_low: paired.ratio_interval.map(|interval| interval.low),
            ratio_high: paired.ratio_interval.map(|interval| interval.high),
            adds: paired.adds,
            adds_low: paired.adds_interval.map(|interval| interval.low),
            adds_high: paired.adds_interval.map(|interval| interval.high),
            verdict: paired.verdict,
            threshold: paired.threshold,
            why: paired.why.clone(),
        }
    }
}
