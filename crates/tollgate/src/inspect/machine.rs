//! The machine that is looked at.

use std::path::Path;

use tollgate_inspect::Machine;

use crate::failure::Failure;

/// The machine at hand, or the one that a tree was captured on.
///
/// # Errors
/// A tree that is none.
pub fn machine(from: Option<&Path>) -> Result<Machine, Failure> {
    match from {
        None => Ok(Machine::here()),
        Some(root) => {
            Machine::open(root).map_err(|error| Failure::input(format!("--from: {} {error}", root.display())))
        }
    }
}
