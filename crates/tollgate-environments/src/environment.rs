//! An environment of a session: it is prepared once, and started with an agent in it as often as the session asks.

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

/// A prepared environment. Dropped, it has ended, and what was made for it is gone.
pub struct Environment {
    // Fields are dropped in this order: what runs ends before what it uses goes.
    running: Option<Promise>,
    ready: Box<dyn Ready>,
    /// The same with a shell in the agent's place, once it was asked for.
    shell: Option<Shell>,
    /// Of the last start that was measured.
    marks: Vec<Mark>,
    making: Making,
    spec: Spec,
    /// The processors that it may run on. The session takes one of them for itself, and not from what it starts.
    cpus: Vec<usize>,
}

struct Shell {
    prepared: Prepared,
    _made: Promise,
}

impl Environment {
    /// Prepares one. `stop` says whether the caller wants to stop; runtimes are tried meanwhile.
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

    /// Has a guest bring the kernel module that `traps/invalid-opcode{by=module-…}` loads there. Building it takes seconds, so it is for
    /// sessions with such a case. Where it cannot be built the guest is told why. Other environments are left as they are.
    ///
    /// # Errors
    /// A sentence; or `stop` said so.
    pub fn bring_module(&mut self, stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        self.ready.bring_module(&self.making, stop)
    }

    /// Has a guest that counts instructions bring files of this machine, and execute commands when it is started, before its agent begins:
    /// what came of them is in [`FOUND`](tollgate_engine::versus::counted::FOUND) then. Files that were made after `since` stay here. What
    /// came along, in a few words.
    ///
    /// # Errors
    /// A sentence: it counts no instructions; the files are too many or too large, or cannot be read.
    pub fn bring_commands(
        &mut self,
        wanted: &[Wanted],
        since: SystemTime,
        rounds: &Rounds,
    ) -> Result<String, EnvironmentError> {
        self.ready.bring_commands(wanted, since, rounds)
    }

    /// Starts it with an agent in it. One that was started before has ended by then. On the host the kernel kills the agent when the
    /// thread that called this ends.
    ///
    /// # Errors
    /// A sentence.
    pub fn start(&mut self) -> Result<Link, EnvironmentError> {
        self.start_as(false, &mut || {})
    }

    /// The same; `begin` is called right before fork(2) of its first process. Where the start itself is measured, a guest has the clock of
    /// this machine, and shows the ends of its phases.
    pub(crate) fn start_as(
        &mut self,
        is_measured: bool,
        begin: &mut dyn FnMut(),
    ) -> Result<Link, EnvironmentError> {
        let is_again = self.running.take().is_some();
        // Where that fails, it may run where the session may.
        let _pinned = Pinned::to(&self.cpus);
        let (cleanup, cpus, stop) = (&self.making.cleanup, &self.cpus, &is_asked_to_stop);
        let (started, marks) =
            self.ready.start(Begin { cleanup, cpus, is_again, is_measured, stop, begin })?;
        self.marks = marks;
        let (link, promise) = started.link();
        self.running = Some(promise);
        Ok(link)
    }

    /// Starts it with a shell in the agent's place, which ends by itself.
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

    /// Ends what runs of it, and undoes what the last start left.
    pub(crate) fn end(&mut self) {
        drop(self.running.take());
        self.ready.end();
        if let Some(shell) = &self.shell {
            let _ = undo_all(&shell.prepared.undo);
        }
    }

    /// The streams of the last start that was measured.
    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    /// What is said beside the times of its starts.
    pub(crate) fn remark_of_starts(&self) -> Option<&'static str> {
        self.ready.remark_of_starts()
    }

    /// Whether its turns can be paired with another environment's: it is on this machine, as far as its name says.
    pub fn is_paired(&self) -> bool {
        self.ready.is_paired()
    }

    /// Whether its time stamp counter goes one tick an instruction, so that its cases are counted.
    pub fn is_counting(&self) -> bool {
        self.ready.is_counting()
    }

    /// Whether its files are on a disk that the host serves.
    pub fn has_disk(&self) -> bool {
        self.ready.has_disk()
    }

    /// The log of the instructions that are executed in it, where there can be one.
    pub fn instructions(&self) -> Option<Box<dyn InstructionLog>> {
        self.ready.instructions()
    }

    /// How often a session starts it, at least 1.
    pub fn starts(&self) -> usize {
        self.spec.description().starts
    }

    /// The processor that is measured on, where its name says so.
    pub fn cpu(&self) -> Option<usize> {
        self.spec.kind().cpu()
    }

    /// A sentence that a user of this environment should know before it is measured.
    pub fn remark(&self) -> Option<&str> {
        self.ready.remark()
    }

    /// What it is made of, in lines: of a guest the kernel, the root file system and the monitor's command; of others the command.
    ///
    /// # Errors
    /// A sentence: a file in memory cannot be made.
    pub fn details(&self) -> Result<Vec<String>, EnvironmentError> {
        self.ready.details(&self.spec.to_string())
    }

    /// Reads what the host knows of it while it runs, where there is something.
    pub fn observer(&self) -> Option<Outside<'static>> {
        self.ready.observer()
    }

    /// The runtime that makes it, where there are several.
    pub fn runtime(&self) -> Option<&'static str> {
        self.ready.runtime()
    }

    /// Whose filter of system calls its processes have, as far as its name decides that.
    pub fn filter(&self) -> Option<String> {
        self.spec.kind().filter(self.runtime())
    }

    /// Its name.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }
}

fn is_asked_to_stop() -> bool {
    interrupt::requested().is_some()
}
