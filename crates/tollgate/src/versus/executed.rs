//! Results of executions of commands, and reasons for none.

use std::path::Path;

use tollgate_engine::session::FunctionCount;
use tollgate_engine::versus::{Compared, NotCompared};
use tollgate_engine::{BenchError, interrupt};
use tollgate_model::text::clean_lines;
use tollgate_model::{Facts, Part};
use tollgate_view::page::{Flames, flames};

use crate::failure::Failure;
use crate::{say, show};

pub struct Executed {
    /// Command by command, each in all places.
    pub compared: Compared,
    /// For each place its part in the session, that of its first command, and its facts; `None` if it gave no results.
    pub places: Vec<Option<(Part, Facts)>>,
    /// For each command, in each place, the functions of a counted execution; empty unless requested.
    pub functions: Vec<Vec<FunctionCount>>,
    /// For each command, in each place, the stacks of a counted execution; empty unless requested.
    pub stacks: Vec<Stacks>,
}

/// The stacks of an execution.
pub struct Stacks {
    /// The command and its place.
    pub of: String,
    /// Frames, the outermost first, and their instructions.
    pub folded: Vec<(String, u64)>,
}

/// Returns the text of a file of stacks: a flame graph if its name ends like that of a picture, or lines with the command as the
/// outermost frame.
pub fn text_of(stacks: &[Stacks], file: &Path) -> String {
    if show::is_picture(file) {
        let all: Vec<Flames<'_>> =
            stacks.iter().map(|stacks| Flames { name: &stacks.of, stacks: &stacks.folded }).collect();
        return flames(&all, "instructions");
    }
    let line = |of: &str, (frames, number): &(String, u64)| format!("{of};{frames} {number}\n");
    // A frame has no `;`.
    let named = stacks.iter().map(|stacks| (stacks.of.replace(';', ","), &stacks.folded));
    named.flat_map(|(of, folded)| folded.iter().map(move |stack| line(&of, stack))).collect()
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
