//! The interface of a place that has the fixtures of workloads: this process, or an agent in an environment.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tollgate_model::Fact;

use crate::cases::benchmark::Chosen;
use crate::cases::fixture::Repetition;
use crate::cases::run::Halt;
use crate::refusal::Refusal;

/// The reason of a case that was never executed.
pub(crate) const NO_TIME: &str = "the run's time ended before its first repetition";

/// A place where the commands of workloads are executed on their fixtures, one phase after the other. A setting that it needs and cannot have is
/// [`BenchError::NoEnvironment`](crate::cases::run::BenchError::NoEnvironment): nothing more is executed anywhere.
pub(crate) trait Stage {
    /// Makes the fixture of these cases, and each of them ready. For each the reason if it cannot be executed.
    fn prepare(&mut self, cases: &[Chosen], until: Instant) -> Result<Vec<Option<Refusal>>, Halt>;

    /// Goes through a phase of a repetition of one of the cases of the last preparation.
    fn pass(&mut self, case: usize, phase: Phase, until: Instant) -> Result<Attempt, Halt>;

    /// Removes the fixture. Facts of what was executed.
    fn finish(&mut self) -> Result<Vec<(String, Fact)>, Halt>;
}

/// A phase of a repetition. Each is gone through on all sides before the next: so the commands run close together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Bring the case to the state in which its command begins.
    Reset,
    /// Execute the command.
    Run {
        /// Whether it is traced, by the best backend.
        is_traced: bool,
    },
    /// Check its result.
    Check,
}

/// The result of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Attempt {
    /// The phase is over, and the next one follows.
    Passed,
    /// It was the last phase: the case was executed.
    Executed(Box<Repetition>),
    /// It cannot be measured, whatever was executed before.
    Refused(Refusal),
    /// Its time was over before it ended.
    OutOfTime,
}
