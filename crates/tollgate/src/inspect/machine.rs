use std::path::Path;

use tollgate_inspect::Machine;

use crate::failure::Failure;

/// This machine, or the one that an option's tree was captured on. Fails if the tree is invalid.
pub fn machine(option: &str, from: Option<&Path>) -> Result<Machine, Failure> {
    match from {
        None => Ok(Machine::here()),
        Some(root) => Machine::open(root)
            .map_err(|error| Failure::input(format!("{option}: {} {error}", root.display()))),
    }
}
