//! `tollgate inspect`: the state that determines latencies.

mod aslr;
mod config;
mod facts;
mod kernel;

use std::path::Path;

use tollgate_inspect::Machine;

use crate::args::{InspectArgs, Question};
use crate::failure::Failure;

/// Reads the chosen subject, and prints it.
///
/// # Errors
/// Those of the question.
pub fn inspect(args: &InspectArgs) -> Result<(), Failure> {
    match &args.question {
        None => facts::facts(args),
        Some(Question::Aslr(args)) => aslr::aslr(args),
        Some(Question::Kernel(args)) => kernel::kernel(args),
        Some(Question::Config(args)) => config::config(args),
    }
}

/// The machine at hand, or the one that a tree was captured on.
///
/// # Errors
/// A tree that is none.
fn machine(from: Option<&Path>) -> Result<Machine, Failure> {
    match from {
        None => Ok(Machine::here()),
        Some(root) => {
            Machine::open(root).map_err(|error| Failure::input(format!("--from: {} {error}", root.display())))
        }
    }
}
