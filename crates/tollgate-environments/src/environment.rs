//! An environment of a session: prepared once, and started with an agent in it as often as the session asks.

use std::time::SystemTime;

use tollgate_engine::interrupt;
use tollgate_engine::session::{InstructionLog, Link, Mark, Outside};
use tollgate_engine::versus::counted::Rounds;
use tollgate_os::affinity::{self, Pinned};

use crate::cleanup::{Cleanup, Promise};
use crate::error::EnvironmentError;
use crate::kinds::Spec;
use crate::known_directory::promised;
use crate::making::Making;
use crate::prepared::Prepared;
use crate::ready::{Begin, Ready};
use crate::started::{self, Start};
use crate::undo::undo_all;
use crate::wanted::Wanted;

/// A prepared environment. Dropping it ends it and removes everything that was made for it.
pub struct Environment {
    // Fields are dropped in this order: processes end before the files that they use are removed.
    running: Option<Promise>,
    ready: Box<dyn Ready>,
    /// The environment with a shell in place of the agent, once it was asked for.
    shell: Option<Shell>,
    /// Streams of the last start that was measured.
    marks: Vec<Mark>,
    making: Making,
    spec: Spec,
    /// Processors that it may run on. The session reserves one of them for itself, but not from what it starts.
    cpus: Vec<usize>,
}

struct Shell {
    prepared: Prepared,
    _made: Promise,
}

impl Environment {
    /// Prepares an environment. `stop` says whether the caller wants to stop while runtimes are tried.
    ///
    /// # Errors
    /// A sentence: what is missing, with its package, or not allowed.
    pub fn prepare(
        spec: &Spec,
        cleanup: &Cleanup,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        let mut making = Making::new(cleanup);
        let ready = spec.kind().prepare(&mut making, stop)?;
        Ok(Self {
            running: None,
            ready,
            shell: None,
            marks: Vec::new(),
            making,
            spec: spec.clone(),
            cpus: affinity::allowed(0).unwrap_or_default(),
        })
    }

    /// Gives a guest the kernel module that `traps/invalid-opcode{by=module-…}` loads, or the reason why it cannot be built.
    /// Building takes seconds, so only sessions with such a case call this. Other environments are left as they are.
    ///
    /// # Errors
    /// A sentence, or `stop` asked to stop.
    pub fn bring_module(&mut self, stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        self.ready.bring_module(&self.making, stop)
    }

    /// Gives a guest that counts instructions files of this machine, and has it execute commands when it starts, before its
    /// agent begins. Their results are in [`FOUND`](tollgate_engine::versus::counted::FOUND). Files that were made after
    /// `since` are not copied. Returns a short description of what was copied.
    ///
    /// # Errors
    /// A sentence: it counts no instructions, or the files are too many, too large or not readable.
    pub fn bring_commands(
        &mut self,
        wanted: &[Wanted],
        since: SystemTime,
        rounds: &Rounds,
    ) -> Result<String, EnvironmentError> {
        self.ready.bring_commands(wanted, since, rounds)
    }

    /// Starts it with an agent in it, after ending the previous start. On the host, the kernel kills the agent when the thread
    /// that called this ends.
    pub fn start(&mut self) -> Result<Link, EnvironmentError> {
        self.start_as(false, &mut || {})
    }

    /// Like [`Self::start`], but calls `begin` right before the fork(2) of its first process. If the start itself is
    /// measured, a guest has this machine's clock and reports the ends of its phases.
    pub(crate) fn start_as(
        &mut self,
        is_measured: bool,
        begin: &mut dyn FnMut(),
    ) -> Result<Link, EnvironmentError> {
        let is_again = self.running.take().is_some();
        // If this fails, it may run where the session may.
        let _pinned = Pinned::to(&self.cpus);
        let (cleanup, cpus, stop) = (&self.making.cleanup, &self.cpus, &is_asked_to_stop);
        let (started, marks) =
            self.ready.start(Begin { cleanup, cpus, is_again, is_measured, stop, begin })?;
        self.marks = marks;
        let (link, promise) = started.link();
        self.running = Some(promise);
        Ok(link)
    }

    /// Starts it with a shell in place of the agent. The shell ends by itself.
    pub(crate) fn start_shell(&mut self, begin: &mut dyn FnMut()) -> Result<Link, EnvironmentError> {
        self.end();
        let shell = match self.shell.take() {
            Some(shell) => shell,
            None => self.prepare_shell()?,
        };
        let Prepared { command, variables, .. } = &self.shell.insert(shell).prepared;
        let _pinned = Pinned::to(&self.cpus);
        let start = Start { command, variables, is_bound: false, files: &[] };
        let (link, promise) = started::start(&start, &self.making.cleanup, begin)?.link();
        self.running = Some(promise);
        Ok(link)
    }

    fn prepare_shell(&self) -> Result<Shell, EnvironmentError> {
        let prepared = self.spec.kind().shell(self.runtime(), &self.making)?;
        let made = promised(&self.making.cleanup, &prepared.undo)?;
        Ok(Shell { prepared, _made: made })
    }

    /// Ends its processes, and undoes what the last start left.
    pub(crate) fn end(&mut self) {
        drop(self.running.take());
        self.ready.end();
        if let Some(shell) = &self.shell {
            let _ = undo_all(&shell.prepared.undo);
        }
    }

    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    pub(crate) fn remark_of_starts(&self) -> Option<&'static str> {
        self.ready.remark_of_starts()
    }

    /// Returns whether its turns can be paired with another environment's: it is on this machine, as far as its name says.
    pub fn is_paired(&self) -> bool {
        self.ready.is_paired()
    }

    /// Returns whether its time stamp counter advances one tick per instruction, so that its cases are counted.
    pub fn is_counting(&self) -> bool {
        self.ready.is_counting()
    }

    /// Returns whether its files are on a disk that the host serves.
    pub fn has_disk(&self) -> bool {
        self.ready.has_disk()
    }

    /// Returns a watch of the instructions that are executed in it, if it can have one.
    pub fn instructions(&self) -> Option<Box<dyn InstructionLog>> {
        self.ready.instructions()
    }

    /// How often a session starts it, at least 1.
    pub fn starts(&self) -> usize {
        self.spec.description().starts
    }

    /// The processor to measure on, if its name sets one.
    pub fn cpu(&self) -> Option<usize> {
        self.spec.kind().cpu()
    }

    /// A sentence that a user of this environment should know before it is measured.
    pub fn remark(&self) -> Option<&str> {
        self.ready.remark()
    }

    /// Lines that describe how it is set up: for a guest the kernel, the root file system and the monitor's command;
    /// otherwise the command.
    ///
    /// # Errors
    /// A sentence: a file in memory cannot be made.
    pub fn details(&self) -> Result<Vec<String>, EnvironmentError> {
        self.ready.details(&self.spec.to_string())
    }

    /// Returns an observer that reads what the host knows of it while it runs, if there is something to read.
    pub fn observer(&self) -> Option<Outside<'static>> {
        self.ready.observer()
    }

    /// The runtime that makes it, if several could.
    pub fn runtime(&self) -> Option<&'static str> {
        self.ready.runtime()
    }

    /// Whose filter of system calls its processes have, as far as its name decides that.
    pub fn filter(&self) -> Option<String> {
        self.spec.kind().filter(self.runtime())
    }

    /// Its name and options.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }
}

fn is_asked_to_stop() -> bool {
    interrupt::requested().is_some()
}
