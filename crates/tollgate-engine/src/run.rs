//! A run, as its caller sees it: progress, results, and why there are none.

use std::time::{Duration, Instant};

use tollgate_model::text::said_by;
use tollgate_model::{Case, Fact, Measurement};

use super::plan::Plan;

/// The results of a run.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// One for every chosen case, and the engine's own.
    pub measurements: Vec<Measurement>,
    /// Facts of the measuring itself: clock, processor, isolation, seed.
    pub facts: Vec<(String, Fact)>,
    /// The signal that stopped the run early. What was measured before is here, and the other cases say so.
    pub interrupted: Option<i32>,
}

impl Findings {
    pub(super) fn append(&mut self, other: Self) {
        self.measurements.extend(other.measurements);
        self.facts.extend(other.facts);
        self.interrupted = self.interrupted.or(other.interrupted);
    }
}

/// The progress of a run.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The case that runs.
    pub what: String,
    /// Time since the run began.
    pub elapsed: Duration,
    /// Time that the run may take.
    pub budget: Duration,
    /// The suite of that case. Suites take turns.
    pub suite: Place,
    /// First figures of cases on the first screen, each reported once.
    pub decided: Vec<Decided>,
    /// While instructions are counted, which takes none of that time: the case's place among all that are.
    pub counted: Option<Place>,
}

/// A place among the suites of a run, or among the cases that are counted, from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Its number.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// A case of which enough processes have run for an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The case.
    pub case: Case,
    /// Its median so far, in nanoseconds for each operation. Zero and less are below the detection limit.
    pub median_ns: f64,
}

/// Why a run has no findings.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// There is no such processor.
    #[error("processor {asked} does not exist here; there are {count}, numbered from 0")]
    NoSuchCpu {
        /// As asked for.
        asked: usize,
        /// Configured processors.
        count: usize,
    },
    /// The processor exists and this process may not use it.
    #[error("processor {asked} is not allowed for this process; allowed are {}", list(.allowed))]
    CpuNotAllowed {
        /// As asked for.
        asked: usize,
        /// The affinity mask.
        allowed: Vec<usize>,
    },
    /// No bench process could be started.
    #[error("no bench process can be started: {}", said_by("process", .0))]
    NoProcess(#[from] std::io::Error),
    /// No environment of a session gave a measurement. Each with the reason.
    #[error("nothing was measured: {0}")]
    NoEnvironment(String),
    /// The user asked to stop before anything was measured.
    #[error("interrupted; nothing was kept")]
    Interrupted(i32),
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The context of whole commands, see [`Kind::Command`](crate::benchmark::Kind::Command).
pub struct RunContext<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// When the whole run began.
    pub began: Instant,
    /// The deadline of this step.
    pub deadline: Instant,
    /// The suite.
    pub suite: Place,
    /// Receives the progress.
    pub watch: &'a mut dyn FnMut(&Progress),
}

impl RunContext<'_> {
    /// Reports the current step.
    pub fn say(&mut self, what: &str) {
        let (elapsed, budget) = (self.began.elapsed(), self.plan.budget);
        let (what, suite) = (what.to_owned(), self.suite);
        (self.watch)(&Progress { what, elapsed, budget, suite, decided: Vec::new(), counted: None });
    }

    /// Time until the step ends.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
