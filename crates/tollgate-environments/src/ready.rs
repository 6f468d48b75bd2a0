//! An environment that is ready to be started, whatever its kind is.

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

/// How it is started.
pub(crate) struct Begin<'a> {
    pub cleanup: &'a Cleanup,
    /// The processors that it may run on.
    pub cpus: &'a [usize],
    /// Whether it was started before. It has ended since.
    pub is_again: bool,
    /// Whether the start itself is measured: a guest has the clock of this machine then, and shows the ends of its phases.
    pub is_measured: bool,
    /// Whether the user asked to stop.
    pub stop: &'a dyn Fn() -> bool,
    /// Called right before fork(2) of its first process.
    pub begin: &'a mut dyn FnMut(),
}

/// One that is ready. Dropped, what only this process knows of it is gone; the rest was promised to the cleanup process.
pub(crate) trait Ready {
    /// Starts it with an agent in it. Also the streams that show the ends of its phases.
    fn start(&mut self, begin: Begin<'_>) -> Result<(Started, Vec<Mark>), EnvironmentError>;

    /// Undoes what the last start left.
    fn end(&self) {}

    /// What it is made of, in lines, where it has this name.
    fn details(&self, name: &str) -> Result<Vec<String>, EnvironmentError>;

    /// The runtime that makes it, where there are several.
    fn runtime(&self) -> Option<&'static str> {
        None
    }

    /// Whether its turns can be paired with another environment's: it is on this machine, as far as its name says.
    fn is_paired(&self) -> bool {
        true
    }

    /// A sentence that its user should know before it is measured.
    fn remark(&self) -> Option<&str> {
        None
    }

    /// Reads what the host knows of it while it runs.
    fn observer(&self) -> Option<Outside<'static>> {
        None
    }

    /// What is said beside the times of its starts.
    fn remark_of_starts(&self) -> Option<&'static str> {
        None
    }

    /// Whether its time stamp counter goes one tick an instruction.
    fn is_counting(&self) -> bool {
        false
    }

    /// Whether its files are on a disk that the host serves.
    fn has_disk(&self) -> bool {
        false
    }

    /// The log of the instructions that are executed in it.
    fn instructions(&self) -> Option<Box<dyn InstructionLog>> {
        None
    }

    /// Has it bring these files, and execute these orders before its agent begins. What came along, in a few words.
    fn bring_commands(
        &mut self,
        _wanted: &[Wanted],
        _since: SystemTime,
        _rounds: &Rounds,
    ) -> Result<String, EnvironmentError> {
        Err(unusable!("its instructions are not counted; vm:exact is an environment that counts"))
    }

    /// Has it bring the kernel module of `traps/invalid-opcode{by=module-…}`, where it has a kernel that loads one.
    fn bring_module(&mut self, _: &Making, _stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

/// One that a command starts.
pub(crate) struct Command {
    pub prepared: Prepared,
    /// As [`Start`] has it.
    pub is_bound: bool,
}

impl Ready for Command {
    fn start(&mut self, begin: Begin<'_>) -> Result<(Started, Vec<Mark>), EnvironmentError> {
        if begin.is_again {
            // What a runtime keeps of a container stands in the way of one that has the same name.
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
