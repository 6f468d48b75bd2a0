//! An environment of any kind that is ready to be started.

use std::time::SystemTime;

use tollgate_engine::session::{InstructionLog, Mark, Outside};
use tollgate_engine::versus::counted::Rounds;

use crate::cleanup::Cleanup;
use crate::commands::quoted;
use crate::error::{EnvironmentError, unusable};
use crate::making::Making;
use crate::prepared::Prepared;
use crate::started::{self, Start, Started};
use crate::undo::undo_all;
use crate::wanted::Wanted;

pub(crate) struct Begin<'a> {
    pub cleanup: &'a Cleanup,
    pub cpus: &'a [usize],
    /// Whether it was started before. It has ended since.
    pub is_again: bool,
    /// Whether the start itself is measured: a guest then has this machine's clock, and reports the ends of its phases.
    pub is_measured: bool,
    pub stop: &'a dyn Fn() -> bool,
    /// Called right before fork(2) of its first process.
    pub begin: &'a mut dyn FnMut(),
}

/// An environment that is ready. Dropping it removes what only this process knows of; the rest was promised to the cleanup
/// process. The methods that [`crate::Environment`] has too are documented there.
pub(crate) trait Ready {
    /// Starts it with an agent in it. Also returns the streams that show the ends of its phases.
    fn start(&mut self, begin: Begin<'_>) -> Result<(Started, Vec<Mark>), EnvironmentError>;

    fn end(&self) {}

    fn details(&self, name: &str) -> Result<Vec<String>, EnvironmentError>;

    fn runtime(&self) -> Option<&'static str> {
        None
    }

    fn is_paired(&self) -> bool {
        true
    }

    fn remark(&self) -> Option<&str> {
        None
    }

    fn observer(&self) -> Option<Outside<'static>> {
        None
    }

    fn remark_of_starts(&self) -> Option<&'static str> {
        None
    }

    fn is_counting(&self) -> bool {
        false
    }

    fn has_disk(&self) -> bool {
        false
    }

    fn instructions(&self) -> Option<Box<dyn InstructionLog>> {
        None
    }

    fn bring_commands(
        &mut self,
        _wanted: &[Wanted],
        _since: SystemTime,
        _rounds: &Rounds,
    ) -> Result<String, EnvironmentError> {
        Err(unusable!("its instructions are not counted; vm:exact counts them"))
    }

    fn bring_module(&mut self, _: &Making, _stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

pub(crate) struct Command {
    pub prepared: Prepared,
    /// See [`Start`].
    pub is_bound: bool,
}

impl Ready for Command {
    fn start(&mut self, begin: Begin<'_>) -> Result<(Started, Vec<Mark>), EnvironmentError> {
        if begin.is_again {
            // A container's leftovers in a runtime would block another container of the same name.
            self.end();
        }
        let Prepared { command, variables, .. } = &self.prepared;
        let start = Start { command, variables, is_bound: self.is_bound, files: &[] };
        Ok((started::start(&start, begin.cleanup, begin.begin)?, Vec::new()))
    }

    fn end(&self) {
        let _ = undo_all(&self.prepared.undo);
    }

    fn details(&self, _name: &str) -> Result<Vec<String>, EnvironmentError> {
        let words = self.prepared.command.iter().map(|word| quoted(&word.to_string_lossy()));
        Ok(vec![format!("command: {}", words.collect::<Vec<_>>().join(" "))])
    }

    fn runtime(&self) -> Option<&'static str> {
        self.prepared.runtime
    }
}
