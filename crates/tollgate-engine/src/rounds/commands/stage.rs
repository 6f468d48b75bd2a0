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

/// A place where the commands of workloads are executed on their fixtures, phase by phase. If it cannot have a setting that it needs, it
/// returns [`BenchError::NoEnvironment`](crate::cases::run::BenchError::NoEnvironment), and nothing more is executed on any side.
pub(crate) trait Stage {
    /// Makes the fixture of these cases and prepares each of them. Returns for each the reason if it cannot be executed.
    fn prepare(&mut self, cases: &[Chosen], until: Instant) -> Result<Vec<Option<Refusal>>, Halt>;

    /// Executes a phase of a repetition of one of the cases of the last preparation.
    fn pass(&mut self, case: usize, phase: Phase, until: Instant) -> Result<Attempt, Halt>;

    /// Removes the fixture. Returns facts about the executions.
    fn finish(&mut self) -> Result<Vec<(String, Fact)>, Halt>;
}

/// A phase of a repetition. Each phase is executed on all sides before the next one, so the commands run close together in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Bring the case to the state in which its command begins.
    Reset,
    /// Execute the command.
    Run {
        /// Whether the best backend traces it.
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
    /// The case cannot be measured, even if it was executed before.
    Refused(Refusal),
    /// Its time was over before it ended.
    OutOfTime,
}
