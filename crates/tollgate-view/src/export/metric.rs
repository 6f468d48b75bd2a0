//! What there is to tell of a run, one by one.

use std::collections::HashSet;

use tollgate_model::estimate::{Estimate, Reading, reading};
use tollgate_model::{Case, Measured, Outcome, ParamValue, Provenance, Run, Traced, Unit, own};

use super::histogram::Histogram;

/// The metric of a case itself.
pub const PRICE: &str = "price";

/// One quantity of one case, and what became of it.
#[derive(Debug)]
pub struct Metric<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its parameters as one text; see [`params_text`].
    pub params: String,
    /// [`PRICE`]; of commands that were followed also `real`, `user`, `sys` and `waiting`.
    pub name: &'static str,
    /// What became of it.
    pub state: State<'a>,
}

/// What became of a case.
#[derive(Debug)]
pub enum State<'a> {
    /// It was measured.
    Measured(Box<Figures>),
    /// It cannot exist in this place.
    Skipped(&'a str),
    /// It went wrong.
    Failed(&'a str),
}

/// What the samples say.
#[derive(Debug)]
pub struct Figures {
    /// Of all figures here.
    pub unit: Unit,
    /// What executed the code.
    pub provenance: Provenance,
    /// Median, interval, minimum.
    pub estimate: Estimate,
    /// It cannot be told from nothing; it is below this.
    pub below: Option<f64>,
    /// Blocks that were timed and not kept.
    pub discarded: u64,
    /// All samples.
    pub histogram: Histogram,
}

impl Figures {
    fn of(measured: &Measured, run: &Run) -> Option<Self> {
        let (estimate, below) = match reading(measured, run)? {
            Reading::Estimate(estimate) => (estimate, None),
            Reading::Below(limit) => (Estimate::of(measured)?, Some(limit)),
        };
        Some(Self {
            unit: measured.unit,
            provenance: measured.provenance,
            estimate,
            below,
            discarded: measured.discarded,
            histogram: Histogram::of(&measured.samples),
        })
    }

    /// Whether it may be shown as what something costs: an emulator's times are nobody's prices.
    pub fn is_estimate(&self) -> bool {
        matches!(self.provenance, Provenance::Hardware | Provenance::Kvm)
            || !matches!(self.unit, Unit::Nanoseconds | Unit::NanosecondsPerLine)
    }
}

impl Metric<'_> {
    /// The suite of its benchmark.
    pub fn suite(&self) -> &str {
        self.case.benchmark.split('/').next().unwrap_or_default()
    }

    /// What the samples say, where there are any.
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

    /// Why it has no samples.
    pub fn why(&self) -> Option<&str> {
        match self.state {
            State::Measured(_) => None,
            State::Skipped(why) | State::Failed(why) => Some(why),
        }
    }
}

/// All that was asked for, in the run's order. What the bench measured of itself is not told. Of cases that read the same, which no run of
/// ours has, only the first: every format has one place for them.
pub fn metrics(run: &Run) -> Vec<Metric<'_>> {
    let mut seen = HashSet::new();
    let asked =
        run.measurements.iter().filter(|measurement| !measurement.case.benchmark.starts_with(own::SUITE));
    asked
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
        Outcome::Skipped { why } => return vec![(PRICE, State::Skipped(why))],
        Outcome::Failed { error } => return vec![(PRICE, State::Failed(error))],
        Outcome::Measured(measured) => measured,
    };
    let Some(figures) = Figures::of(measured, run) else {
        return vec![(PRICE, State::Failed("it has no samples"))];
    };
    let mut states = vec![(PRICE, State::Measured(Box::new(figures)))];
    for (name, times) in times_of_commands(&measured.traced) {
        let apart = Measured { unit: Unit::Nanoseconds, samples: times, ..without_samples(measured) };
        let estimate = Estimate::of(&apart);
        states.extend(estimate.map(|estimate| {
            let histogram = Histogram::of(&apart.samples);
            let figures = Figures {
                unit: apart.unit,
                provenance: apart.provenance,
                estimate,
                below: None,
                discarded: apart.discarded,
                histogram,
            };
            (name, State::Measured(Box::new(figures)))
        }));
    }
    states
}

/// Where the time of whole commands went, sample by sample. Waiting is told where whoever followed them saw it each time.
fn times_of_commands(traced: &[Traced]) -> Vec<(&'static str, Vec<f64>)> {
    if traced.is_empty() {
        return Vec::new();
    }
    let times = |time: fn(&Traced) -> u64| traced.iter().map(|traced| time(traced) as f64).collect();
    let waiting: Option<Vec<f64>> =
        traced.iter().map(|traced| traced.idle.map(|idle| idle.total_ns() as f64)).collect();
    let mut all = vec![
        ("real", times(|traced| traced.wall_ns)),
        ("user", times(|traced| traced.user_ns)),
        ("sys", times(|traced| traced.sys_ns)),
    ];
    all.extend(waiting.map(|waiting| ("waiting", waiting)));
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

/// `name=value,name=value`, by name; empty where there are none. A comma, an equals sign or a backslash within has a backslash before it.
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
