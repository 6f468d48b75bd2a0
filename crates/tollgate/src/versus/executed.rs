//! What executions of commands gave, and why they gave nothing.

use tollgate_engine::session::FunctionCount;
use tollgate_engine::versus::{Compared, NotCompared};
use tollgate_engine::{BenchError, interrupt};
use tollgate_model::text::clean_lines;
use tollgate_model::{Facts, Part};

use crate::failure::Failure;
use crate::say;

/// What was found in all places.
pub struct Executed {
    /// Command by command, each in all places.
    pub compared: Compared,
    /// For each place its part in the session, as of its first command, and its facts; None where it gave nothing.
    pub places: Vec<Option<(Part, Facts)>>,
    /// Command by command, each in all places, the functions of a counted execution; none where they were not asked for.
    pub functions: Vec<Vec<FunctionCount>>,
    /// The stacks of counted executions with their instructions, the name of the command and place as the outermost frame; none where they
    /// were not asked for.
    pub stacks: Vec<(String, u64)>,
}

/// What the user is told of a command that failed, after what it said.
pub fn failed(error: NotCompared) -> Failure {
    match error {
        NotCompared::Failed { sentence, said } => {
            say::warn(&clean_lines(&said));
            Failure::input(sentence)
        }
        NotCompared::Run(BenchError::Interrupted(signal)) => Failure::Interrupted(signal),
        NotCompared::Run(error) => {
            interrupt::requested().map_or_else(|| Failure::input(error.to_string()), Failure::Interrupted)
        }
    }
}
