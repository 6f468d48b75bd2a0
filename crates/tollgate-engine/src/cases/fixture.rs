//! The fixture of whole commands, and one execution of a command on it.

use serde::{Deserialize, Serialize};
use tollgate_model::{Fact, Traced};

use crate::cases::run::{BenchError, RunContext};
use crate::refusal::Refusal;

/// The common basis of some whole commands, such as a source tree on disk. It is removed on drop.
pub trait Fixture {
    /// Prepares a case for execution, by its index among the cases of the fixture.
    ///
    /// # Errors
    /// See [`Stop`].
    fn make_ready(&mut self, case: usize, context: &mut RunContext) -> Step<()>;

    /// Brings a prepared case to the state in which its command begins.
    ///
    /// # Errors
    /// See [`Stop`].
    fn reset(&mut self, case: usize, context: &mut RunContext) -> Step<()>;

    /// Executes the command of a case that was reset, traced by the best backend or not at all.
    ///
    /// # Errors
    /// See [`Stop`].
    fn run(&mut self, case: usize, is_traced: bool, context: &mut RunContext) -> Step<()>;

    /// Checks the result of the command.
    ///
    /// # Errors
    /// See [`Stop`].
    fn check(&mut self, case: usize, context: &mut RunContext) -> Step<Repetition>;

    /// Returns facts about what is executed, such as versions of programs.
    fn facts(&self) -> Vec<(String, Fact)>;
}

/// One execution of the command of a case, on a fixture that was reset before it and checked after it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Its times, and its calls if it was traced; `None` if it is discarded because its input was not in the required state.
    pub traced: Option<Traced>,
    /// Notes on the case.
    pub notes: Vec<String>,
}

/// Why a step on a fixture was not done.
#[derive(Debug)]
pub enum Stop {
    /// The run ends.
    Run(BenchError),
    /// The time for the step is over.
    Time,
    /// The case cannot be measured.
    Case(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Case(refusal)
    }
}

/// The result of a step on a fixture.
pub type Step<T> = Result<T, Stop>;
