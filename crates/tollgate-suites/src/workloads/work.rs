//! The interface of the workloads: a repeatable command with a check of its result.

use std::path::PathBuf;

use super::command::Command;
use super::fixture::Tree;
use crate::prelude::*;

pub(super) struct Workload {
    pub benchmark: Benchmark,
    /// Prepares a case on a fixture.
    pub ready: fn(&mut Tree, &Params, &mut RunContext) -> Step<Box<dyn Work>>,
}

pub(super) trait Work {
    /// Undoes the last command.
    fn reset(&self, _fixture: &Tree, _context: &mut RunContext) -> Step<()> {
        Ok(())
    }

    /// The files and trees that the command reads.
    fn reads(&self, fixture: &Tree) -> Vec<PathBuf> {
        vec![fixture.tree()]
    }

    fn command(&self, fixture: &Tree) -> Command;

    /// Checks the result. Returns the check, as a clause.
    fn check(&self, fixture: &Tree, context: &mut RunContext) -> Step<String>;
}
