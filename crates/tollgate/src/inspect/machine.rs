//! The machine that is looked at.

use std::path::Path;

use tollgate_inspect::Machine;

use crate::failure::Failure;

/// The machine at hand, or the one that the tree of an option was captured on.
///
/// # Errors
/// A tree that is none.
pub fn machine(option: &str, from: Option<&Path>) -> Result<Machine, Failure> {
    match from {
        None => Ok(Machine::here()),
        Some(root) => Machine::open(root)
            .map_err(|error| Failure::input(format!("{option}: {} {error}", root.display()))),
    }
}
