//! The interface of the workloads: a repeatable command with a check of its result.

use std::path::PathBuf;

use tollgate_model::Params;

use tollgate_engine::benchmark::Benchmark;
use tollgate_engine::{Refusal, RunContext};

use super::command::{Command, Step, is_here};
use super::fixture::Tree;

/// A benchmark that is a whole command.
pub(super) struct Workload {
    pub benchmark: Benchmark,
    /// Prepares a case on a fixture.
    pub ready: fn(&mut Tree, &Params, &mut RunContext) -> Step<Box<dyn Work>>,
}

/// A repeatable command.
pub(super) trait Work {
    /// Undoes the last command.
    ///
    /// # Errors
    /// Why it cannot be repeated.
    fn reset(&self, fixture: &Tree, context: &mut RunContext) -> Step<()>;

    /// The files and trees that the command reads.
    fn reads(&self, fixture: &Tree) -> Vec<PathBuf>;

    /// The command.
    fn command(&self, fixture: &Tree) -> Command;

    /// Checks its result. Returns the check, as a clause.
    ///
    /// # Errors
    /// The wrong result.
    fn check(&self, fixture: &Tree, context: &mut RunContext) -> Step<String>;
}

/// A program that a workload needs.
pub(super) struct Program {
    pub name: &'static str,
    /// Its name, and its project.
    pub package: &'static str,
    /// Its Debian package.
    pub debian: &'static str,
}

impl Program {
    /// Checks that it exists.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with the package to install.
    pub fn must_be_here(&self) -> Result<(), Refusal> {
        match is_here(self.name) {
            true => Ok(()),
            false => Err(Refusal::Skip(self.missing())),
        }
    }

    /// `git is missing: install git (in Debian the package git)`.
    pub fn missing(&self) -> String {
        format!("{} is missing: install {} (in Debian the package {})", self.name, self.package, self.debian)
    }
}
