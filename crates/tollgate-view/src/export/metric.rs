//! A run as a list of metrics.

use std::collections::HashSet;

use tollgate_model::estimate::{Estimate, Reading, reading};
use tollgate_model::{Case, Measured, Outcome, ParamValue, Provenance, Run, Traced, Unit, own};

use super::histogram::Histogram;

/// The metric of a case whose unit is a time, and of a case without figures.
pub const LATENCY: &str = "latency";

/// The parts of the time of a traced command.
const PARTS: [&str; 4] = ["real", "user", "sys", "waiting"];

/// One quantity of one case, with its outcome.
#[derive(Debug)]
pub struct Metric<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its parameters as one text; see [`params_text`].
    pub params: String,
    /// [`LATENCY`], `size` or `instructions`, by the unit; of traced commands also `real`, `user`, `sys` and `waiting`.
    pub name: &'static str,
    /// Its outcome.
    pub state: State<'a>,
}

/// The outcome of a metric.
#[derive(Debug)]
pub enum State<'a> {
    /// It was measured.
    Measured(Box<Figures>),
    /// It cannot exist in this environment.
    Skipped(&'a str),
    /// It failed.
    Failed(&'a str),
}

/// The figures of a metric.
#[derive(Debug)]
pub struct Figures {
    /// Of all figures.
    pub unit: Unit,
    /// What executed the code.
    pub provenance: Provenance,
    /// Median, interval, minimum.
    pub estimate: Estimate,
    /// The bound of a value below the detection limit.
    pub detection_limit: Option<f64>,
    /// Discarded batches.
    pub discarded: u64,
    /// Of all samples.
    pub histogram: Histogram,
}

impl Figures {
    fn of(measured: &Measured, run: &Run) -> Option<Self> {
        let (estimate, detection_limit) = match reading(measured, run)? {
            Reading::Estimate(estimate) => (estimate, None),
            Reading::BelowLimit(bound) => (Estimate::of(measured)?, Some(bound)),
        };
        Some(Self {
            unit: measured.unit,
            provenance: measured.provenance,
            estimate,
            detection_limit,
            discarded: measured.discarded,
            histogram: Histogram::of(&measured.samples),
        })
    }

    /// Whether it is a result: times of an emulator are not.
    pub fn is_valid(&self) -> bool {
        matches!(self.provenance, Provenance::Hardware | Provenance::Kvm)
            || !matches!(self.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine)
    }
}

impl Metric<'_> {
    /// The suite of its benchmark.
    pub fn suite(&self) -> &str {
        self.case.benchmark.split('/').next().unwrap_or_default()
    }

    /// The figures, where it was measured.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.state {
            State::Measured(figures) => Some(figures),
            State::Skipped(_) | State::Failed(_) => None,
        }
    }

    /// `measured`, `skipped` or `failed`.
    pub fn status(&self) -> &'static str {
        match self.state {
            State::Measured(_) => "measured",
            State::Skipped(_) => "skipped",
            State::Failed(_) => "failed",
        }
    }

    /// Whether it is a part of a command's time, and not the case itself.
    pub fn is_part(&self) -> bool {
        PARTS.contains(&self.name)
    }

    /// Why it has no samples.
    pub fn why(&self) -> Option<&str> {
        match self.state {
            State::Measured(_) => None,
            State::Skipped(why) | State::Failed(why) => Some(why),
        }
    }
}

/// The metrics of all cases, in the run's order, without the engine's own benchmarks. Of cases whose parameters have the same text, which no
/// run of tollgate's has, only the first: formats have one entry for them.
pub fn metrics(run: &Run) -> Vec<Metric<'_>> {
    let mut seen = HashSet::new();
    let cases =
        run.measurements.iter().filter(|measurement| !measurement.case.benchmark.starts_with(own::SUITE));
    cases
        .filter(|measurement| seen.insert((&measurement.case.benchmark, params_text(&measurement.case))))
        .flat_map(|measurement| {
            let case = &measurement.case;
            states(&measurement.outcome, run).into_iter().map(|(name, state)| Metric {
                case,
                params: params_text(case),
                name,
                state,
            })
        })
        .collect()
}

fn states<'a>(outcome: &'a Outcome, run: &Run) -> Vec<(&'static str, State<'a>)> {
    let measured = match outcome {
        Outcome::Skipped { why } => return vec![(LATENCY, State::Skipped(why))],
        Outcome::Failed { error } => return vec![(LATENCY, State::Failed(error))],
        Outcome::Measured(measured) => measured,
    };
    let Some(figures) = Figures::of(measured, run) else {
        return vec![(LATENCY, State::Failed("it has no samples"))];
    };
    let mut states = vec![(name_of(figures.unit), State::Measured(Box::new(figures)))];
    for (name, times) in PARTS.into_iter().zip(times_of_commands(&measured.traced)) {
        let part = Measured { unit: Unit::Nanoseconds, samples: times, ..without_samples(measured) };
        let estimate = Estimate::of(&part);
        states.extend(estimate.map(|estimate| {
            let histogram = Histogram::of(&part.samples);
            let figures = Figures {
                unit: part.unit,
                provenance: part.provenance,
                estimate,
                detection_limit: None,
                discarded: part.discarded,
                histogram,
            };
            (name, State::Measured(Box::new(figures)))
        }));
    }
    states
}

/// The metric of a case itself.
fn name_of(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds | Unit::NanosecondsPerLine | Unit::Cycles => LATENCY,
        Unit::Bytes => "size",
        Unit::Instructions => "instructions",
    }
}

/// The [`PARTS`] of traced commands, sample by sample. Waiting is absent where the tracer missed it in any repetition.
fn times_of_commands(traced: &[Traced]) -> Vec<Vec<f64>> {
    if traced.is_empty() {
        return Vec::new();
    }
    let times = |time: fn(&Traced) -> u64| traced.iter().map(|traced| time(traced) as f64).collect();
    let waiting: Option<Vec<f64>> =
        traced.iter().map(|traced| traced.idle.map(|idle| idle.total_ns() as f64)).collect();
    let mut all =
        vec![times(|traced| traced.wall_ns), times(|traced| traced.user_ns), times(|traced| traced.sys_ns)];
    all.extend(waiting);
    all
}

fn without_samples(measured: &Measured) -> Measured {
    Measured {
        unit: measured.unit,
        provenance: measured.provenance,
        ops_per_sample: measured.ops_per_sample,
        clock_hz: measured.clock_hz,
        samples: Vec::new(),
        discarded: measured.discarded,
        processes: measured.processes.clone(),
        counted: None,
        counters: Vec::new(),
        bytes_per_op: None,
        group: String::new(),
        baseline: None,
        notes: Vec::new(),
        traced: Vec::new(),
    }
}

/// `name=value,name=value`, by name; empty without parameters. A comma, an equals sign or a backslash within has a backslash before it.
pub fn params_text(case: &Case) -> String {
    let pair =
        |(name, value): (&String, &ParamValue)| format!("{}={}", escaped(name), escaped(&value.to_string()));
    case.params.iter().map(pair).collect::<Vec<_>>().join(",")
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, ',' | '=' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
