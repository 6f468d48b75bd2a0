//! What the benchmarks have in common: a command that can be repeated, and whose work can be checked.

use std::path::PathBuf;

use tollgate_model::Params;

use tollgate_engine::{Refusal, RunContext};

use super::command::{Command, Step, is_here};
use super::fixture::Tree;

/// Makes a case ready on a ground.
pub(super) type Ready = fn(&mut Tree, &Params, &mut RunContext) -> Step<Box<dyn Work>>;

/// A command that does the same each time.
pub(super) trait Work {
    /// Takes back what the last command did.
    ///
    /// # Errors
    /// Why it cannot be repeated.
    fn reset(&self, ground: &Tree, context: &mut RunContext) -> Step<()>;

    /// The files, and trees of files, that the command reads.
    fn reads(&self, ground: &Tree) -> Vec<PathBuf>;

    /// It.
    fn command(&self, ground: &Tree) -> Command;

    /// Whether it did its work; what was looked at, as a clause.
    ///
    /// # Errors
    /// What it did instead.
    fn check(&self, ground: &Tree, context: &mut RunContext) -> Step<String>;
}

/// A program that a workload needs.
pub(super) struct Program {
    pub name: &'static str,
    /// What it is known by, and what brings it.
    pub package: &'static str,
    /// What Debian calls that.
    pub debian: &'static str,
}

impl Program {
    /// That it is here.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with what to install.
    pub fn must_be_here(&self) -> Result<(), Refusal> {
        match is_here(self.name) {
            true => Ok(()),
            false => Err(Refusal::Skip(self.missing())),
        }
    }

    /// `there is no git here: install git (in Debian the package git)`.
    pub fn missing(&self) -> String {
        format!(
            "there is no {} here: install {} (in Debian the package {})",
            self.name, self.package, self.debian
        )
    }
}
