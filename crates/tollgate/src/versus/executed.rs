//! Results of executions of commands, and reasons for none.

use tollgate_engine::session::FunctionCount;
use tollgate_engine::versus::{Compared, NotCompared};
use tollgate_engine::{BenchError, interrupt};
use tollgate_model::text::clean_lines;
use tollgate_model::{Facts, Part};

use crate::failure::Failure;
use crate::say;

pub struct Executed {
    /// Command by command, each in all places.
    pub compared: Compared,
    /// For each place its part in the session, that of its first command, and its facts; `None` if it gave no results.
    pub places: Vec<Option<(Part, Facts)>>,
    /// For each command, in each place, the functions of a counted execution; empty unless requested.
    pub functions: Vec<Vec<FunctionCount>>,
    /// The stacks of counted executions with their instructions, the name of the command and place as the outermost frame; empty
    /// unless requested.
    pub stacks: Vec<(String, u64)>,
}

/// The message about a command that failed, after its own output.
pub fn failed(error: NotCompared) -> Failure {
    match error {
        NotCompared::Failed { sentence, said } => {
            say::warn(&clean_lines(&said));
            Failure::Failed(sentence)
        }
        NotCompared::Run(BenchError::Interrupted(signal)) => Failure::Interrupted(signal),
        NotCompared::Run(error) => {
            interrupt::requested().map_or_else(|| Failure::input(error.to_string()), Failure::Interrupted)
        }
    }
}
