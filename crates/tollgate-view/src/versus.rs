//! The user's commands whose executions alternated, as they are shown: the others compared with the first, and the parts and the
//! system calls that the differences consist of.
//!
//! Each command in each environment is a member of a session. The figures are those of its timed executions; other, traced
//! executions show what a difference consists of.

mod beside;
mod cells;
mod counted;
pub(crate) mod difference;
pub mod hyperfine;
pub mod json;
pub(crate) mod lines;
mod matrix;
pub mod more;
mod notes;
pub(crate) mod record;
pub mod revisions;
pub(crate) mod said;
pub(crate) mod split;
mod tables;
mod text;

pub use beside::counts;
pub use cells::letter;
pub use counted::functions;
pub use text::text;

use tollgate_model::versus::{
    CALLS, FAULTS, FIRST, INSTRUCTIONS, ITERATIONS, KERNEL_INSTRUCTIONS, MEMORY, REAL, SYS, TICKS, USER,
    USER_INSTRUCTIONS,
};

/// Describes a case of a command in a sentence.
pub(crate) fn about(case: &str) -> Option<&'static str> {
    Some(match case {
        REAL => "The real time of a command, from its release to its end.",
        USER => "Processor time of its processes in user mode.",
        SYS => "Processor time of its processes in the kernel.",
        MEMORY => "The largest memory of one of its processes at any time.",
        FAULTS => "The page faults of its processes, with input or output and without.",
        INSTRUCTIONS => "The instructions of an execution: of the program, and of the kernel for it.",
        USER_INSTRUCTIONS => "The instructions that the program executed itself.",
        KERNEL_INSTRUCTIONS => "The instructions that the kernel executed for it.",
        ITERATIONS => "Iterations of repeating (rep) instructions, which both counts include.",
        FIRST => "The instructions of the first execution after the start of the guest.",
        CALLS => "The system calls of its processes.",
        TICKS => "Ticks of the kernel during an execution.",
        _ => return None,
    })
}
