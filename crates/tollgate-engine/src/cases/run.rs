//! A run as its caller sees it: progress, results, and errors.

use std::time::{Duration, Instant};

use tollgate_model::text::said_by;
use tollgate_model::{Case, Fact, Measurement};

use crate::cases::headline::Headline;
use crate::cases::plan::{Length, Ordinal, Plan};

/// The reason why a place executes nothing more.
pub type Halt = tollgate_alternation::Halt<BenchError>;

/// The results of a run.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// One for every chosen case, and the engine's own.
    pub measurements: Vec<Measurement>,
    /// Facts of the measuring itself: clock, processor, isolation, seed.
    pub facts: Vec<(String, Fact)>,
    /// The signal that stopped the run early. Earlier measurements are kept, and the other cases say so.
    pub interrupted: Option<i32>,
    /// The first chosen case that the run had no time for.
    pub out_of_time: Option<Case>,
}

impl Findings {
    pub(crate) fn append(&mut self, other: Self) {
        self.measurements.extend(other.measurements);
        self.facts.extend(other.facts);
        self.interrupted = self.interrupted.or(other.interrupted);
        self.out_of_time = self.out_of_time.take().or(other.out_of_time);
    }

    /// Whether a chosen case was measured. The engine's own benchmarks alone are not informative.
    pub(crate) fn has_figures(&self) -> bool {
        self.measurements
            .iter()
            .any(|one| one.outcome.measured().is_some() && !tollgate_model::own::is_own(&one.case.benchmark))
    }

    /// Returns an error for the first case without a figure for lack of time; `None` if the plan has no time limit.
    pub(crate) fn no_time(&self, plan: &Plan) -> Option<BenchError> {
        if plan.processes.is_some() {
            return None;
        }
        let budget = plan.budget;
        let case = self.out_of_time.clone()?;
        let why = self.measurements.iter().find(|one| one.case == case)?.outcome.why()?.to_owned();
        Some(BenchError::NoTime { budget, case, why })
    }
}

/// The progress of a run.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The case that runs.
    pub what: String,
    /// Time since the run began.
    pub elapsed: Duration,
    /// The condition that ends the run.
    pub length: Length,
    /// The suite of that case. Suites take turns.
    pub suite: Ordinal,
    /// First figures of cases on the first screen, each reported once.
    pub decided: Vec<Decided>,
}

/// A case with enough processes for an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The case.
    pub case: Case,
    /// Its row on the first screen.
    pub headline: &'static Headline,
    /// Its median so far, in nanoseconds per operation. Zero and less are below the detection limit.
    pub median_ns: f64,
}

/// Why a run has no findings.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The processor does not exist.
    #[error("processor {asked} does not exist here; there are {count}, numbered from 0")]
    NoSuchCpu {
        /// As asked for.
        asked: usize,
        /// Configured processors.
        count: usize,
    },
    /// The processor exists, but this process may not use it.
    #[error("processor {asked} is not allowed for this process; allowed are {}", list(.allowed))]
    CpuNotAllowed {
        /// As asked for.
        asked: usize,
        /// The affinity mask.
        allowed: Vec<usize>,
    },
    /// No bench process could be started.
    #[error("a bench process could not be started: {}", said_by("process", .0))]
    NoProcess(#[from] std::io::Error),
    /// No environment of a session gave a measurement; a reason for each.
    #[error("nothing was measured: {0}")]
    NoEnvironment(String),
    /// The time was over before any case was measured.
    #[error("nothing was measured in {} s: {case}: {why}", budget.as_secs_f64())]
    NoTime {
        /// The time of the run.
        budget: Duration,
        /// A case that the time was too short for.
        case: Case,
        /// Why that case has no figure.
        why: String,
    },
    /// The user asked to stop before anything was measured.
    #[error("interrupted; nothing was kept")]
    Interrupted(i32),
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The context of whole commands, see [`Kind::Command`](crate::cases::benchmark::Kind::Command).
pub struct RunContext<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// When the whole run began.
    pub began: Instant,
    /// The deadline of this step.
    pub deadline: Instant,
    /// The suite, among those of the run.
    pub suite: Ordinal,
    /// Receives the progress.
    pub watch: &'a mut dyn FnMut(&Progress),
}

impl RunContext<'_> {
    /// Reports the current step.
    pub fn say(&mut self, what: &str) {
        let (elapsed, length) = (self.began.elapsed(), self.plan.length(0));
        let (what, suite) = (what.to_owned(), self.suite);
        (self.watch)(&Progress { what, elapsed, length, suite, decided: Vec::new() });
    }

    /// Returns the time until the step ends.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
