//! An environment of a session: it is prepared once, and started with an agent in it as often as the session asks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tollgate_engine::interrupt;
use tollgate_engine::session::{Link, Mark, Outside};
use tollgate_os::affinity::{self, Pinned};
use tollgate_os::private::{Place, PrivateDirectory};

use crate::agent::Agent;
use crate::container::Paths;
use crate::error::{EnvironmentError, unusable};
use crate::exec::{self, Reach, Way};
use crate::guardian::{Guardian, Promise};
use crate::known_directory::{self, promised};
use crate::prepared::Prepared;
use crate::spec::{Host, Spec};
use crate::started::{self, Start};
use crate::undo::undo_all;
use crate::vm::{self, Guest, GuestLog, Launch};
use crate::{apply, container, gvisor, shell};

/// A prepared environment. Dropped, it has ended, and what was made for it is gone.
pub struct Environment {
    // Fields are dropped in this order: what runs ends before what it uses goes.
    running: Option<Promise>,
    how: How,
    /// The same with a shell in the agent's place, once it was asked for.
    shell: Option<Shell>,
    /// Of the last start that was measured.
    marks: Vec<Mark>,
    _made: Vec<Promise>,
    private: Vec<PrivateDirectory>,
    guardian: Guardian,
    spec: Spec,
    /// The processors that it may run on. The session takes one of them for itself, and not from what it starts.
    cpus: Vec<usize>,
}

struct Shell {
    prepared: Prepared,
    _made: Promise,
}

enum How {
    /// A command is ready. `is_bound` as [`Start`] has it.
    Command { prepared: Prepared, is_bound: bool },
    /// A command is tried with this program behind it.
    Reach { reach: Reach, known: Option<Way>, agent: Agent },
    /// A guest is booted.
    Guest(Box<Guest>),
}

impl Environment {
    /// Prepares one. `stop` says whether the caller wants to stop; runtimes are tried meanwhile.
    ///
    /// # Errors
    /// A sentence: what is missing, with its package, or not allowed.
    pub fn prepare(
        spec: &Spec,
        guardian: &Guardian,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        let mut made = Vec::new();
        let mut private = Vec::new();
        let how = match spec {
            Spec::Host(host) => How::Command { prepared: on_host(spec, host)?, is_bound: true },
            Spec::Exec(exec) => How::Reach {
                reach: Reach::Prefix(exec.words().iter().map(OsString::from).collect()),
                known: None,
                agent: Agent::with(&[])?,
            },
            Spec::Ssh(ssh) => How::Reach {
                reach: Reach::Host(ssh.host().to_owned()),
                known: None,
                agent: Agent::with(&[])?,
            },
            Spec::Vm(vm) => {
                let own = private_directory(guardian, &mut made)?;
                // A guest with a disk has it where the host measures files too.
                let files = vm::has_disk(vm)?.then(|| here(guardian, &mut made)).flatten();
                let paths = Paths::of(&own, files.as_ref());
                let guest = Guest::prepare(vm, paths, stop)?;
                private.extend([Some(own), files].into_iter().flatten());
                How::Guest(Box::new(guest))
            }
            Spec::Container(_) | Spec::Gvisor(_) => {
                let own = private_directory(guardian, &mut made)?;
                let files = here(guardian, &mut made);
                let paths = Paths::of(&own, files.as_ref());
                let prepared = in_private(spec, paths, guardian, stop)?;
                made.push(promised(guardian, &prepared.undo)?);
                private.extend([Some(own), files].into_iter().flatten());
                How::Command { prepared, is_bound: false }
            }
        };
        // The last that was made goes first.
        made.reverse();
        let (guardian, spec) = (guardian.clone(), spec.clone());
        let cpus = affinity::allowed(0).unwrap_or_default();
        let (shell, marks) = (None, Vec::new());
        Ok(Self { running: None, how, shell, marks, _made: made, private, guardian, spec, cpus })
    }

    /// Has a guest bring the kernel module that `traps/invalid-opcode{by=module-…}` loads there. Building it takes seconds, so it is for
    /// sessions with such a case. Where it cannot be built the guest is told why. Other environments are left as they are.
    ///
    /// # Errors
    /// A sentence; or `stop` said so.
    pub fn bring_module(&mut self, stop: &dyn Fn() -> bool) -> Result<(), EnvironmentError> {
        match (&mut self.how, self.private.first()) {
            (How::Guest(guest), Some(own)) => guest.add_module(own, &self.guardian, stop),
            _ => Ok(()),
        }
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
        let was_started = self.running.take().is_some();
        // Where that fails, it may run where the session may.
        let _pinned = Pinned::to(&self.cpus);
        let started = match &mut self.how {
            How::Command { prepared, is_bound } => {
                if was_started {
                    // What a runtime keeps of a container stands in the way of one that has the same name.
                    let _ = undo_all(&prepared.undo);
                }
                let (command, variables) = (&prepared.command, &prepared.variables);
                let start = Start { command, variables, is_bound: *is_bound, files: &[] };
                started::start(&start, &self.guardian, begin)?
            }
            How::Guest(guest) => {
                guest.renew(&is_asked_to_stop)?;
                let (Launch { command, files }, marks) = match is_measured {
                    true => guest.launch_timed()?,
                    false => (guest.launch()?, Vec::new()),
                };
                self.marks = marks;
                let start = Start { command: &command, variables: &[], is_bound: true, files: &files };
                let mut started = started::start(&start, &self.guardian, begin)?;
                started.said.also("QEMU", guest.last_words());
                guest.pin(started.pid, &self.cpus).map_err(|why| unusable!("vm: {why}"))?;
                started
            }
            How::Reach { reach, known, agent } => {
                exec::start(reach, known, agent, &self.guardian, &is_asked_to_stop, begin)?
            }
        };
        let (link, promise) = started.link();
        self.running = Some(promise);
        Ok(link)
    }

    /// Starts it with a shell in the agent's place, which ends by itself.
    pub(crate) fn start_shell(&mut self, begin: &mut dyn FnMut()) -> Result<Link, EnvironmentError> {
        self.end();
        let is_reached = matches!(self.how, How::Reach { .. });
        if !is_reached && self.shell.is_none() {
            self.shell = Some(self.prepare_shell()?);
        }
        let _pinned = Pinned::to(&self.cpus);
        let started = match (&self.how, &self.shell) {
            (How::Reach { reach, .. }, _) => exec::start_shell(reach, &self.guardian, begin)?,
            (_, Some(Shell { prepared: Prepared { command, variables, .. }, .. })) => {
                let start = Start { command, variables, is_bound: false, files: &[] };
                started::start(&start, &self.guardian, begin)?
            }
            (_, None) => return Err(unusable!("{}: it has no shell", self.spec)),
        };
        let (link, promise) = started.link();
        self.running = Some(promise);
        Ok(link)
    }

    fn prepare_shell(&self) -> Result<Shell, EnvironmentError> {
        let paths = || {
            let private = self.private.first();
            let private = private.ok_or_else(|| unusable!("{}: it has no directory", self.spec))?;
            Ok(Paths::of(private, self.private.get(1)))
        };
        let prepared = shell::prepare(&self.spec, self.runtime(), &paths)?;
        let made = promised(&self.guardian, &prepared.undo)?;
        Ok(Shell { prepared, _made: made })
    }

    /// Ends what runs of it, and undoes what the last start left.
    pub(crate) fn end(&mut self) {
        drop(self.running.take());
        let prepared = match &self.how {
            How::Command { prepared, .. } => Some(prepared),
            How::Reach { .. } | How::Guest(_) => None,
        };
        for undo in prepared.into_iter().chain(self.shell.as_ref().map(|shell| &shell.prepared)) {
            let _ = undo_all(&undo.undo);
        }
    }

    /// The streams of the last start that was measured.
    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    /// Whether it is a guest, and QEMU's translator executes it; None of others.
    pub(crate) fn is_translated(&self) -> Option<bool> {
        match &self.how {
            How::Guest(guest) => Some(guest.is_translated()),
            How::Command { .. } | How::Reach { .. } => None,
        }
    }

    /// Whether its turns can be paired with another environment's: it is on this machine, as far as its name says.
    pub fn is_paired(&self) -> bool {
        /// Programs that run what stands behind them on another machine.
        const AFAR: [&str; 4] = ["ssh", "kubectl", "oc", "mosh"];
        match &self.spec {
            Spec::Host(_) | Spec::Container(_) | Spec::Gvisor(_) => true,
            Spec::Vm(_) => !self.is_counting(),
            Spec::Ssh(_) => false,
            Spec::Exec(exec) => {
                let program = exec.words().first().map(PathBuf::from);
                let name = program.as_deref().and_then(Path::file_name);
                !name.is_some_and(|name| AFAR.iter().any(|afar| name == *afar))
            }
        }
    }

    /// Whether its time stamp counter goes one tick an instruction, so that its cases are counted.
    pub fn is_counting(&self) -> bool {
        matches!(&self.how, How::Guest(guest) if guest.is_counting())
    }

    /// The log of the instructions that are executed in it, where there can be one.
    pub fn instructions(&self) -> Option<GuestLog> {
        match &self.how {
            How::Guest(guest) => guest.log(),
            _ => None,
        }
    }

    /// How often a session starts it, at least 1. In gVisor the place of the sandbox's own program in memory matters as well.
    pub fn starts(&self) -> usize {
        match &self.spec {
            Spec::Gvisor(_) => 2,
            _ => 1,
        }
    }

    /// The processor that is measured on, where its name says so.
    pub fn cpu(&self) -> Option<usize> {
        match &self.spec {
            Spec::Host(host) => host.cpu(),
            _ => None,
        }
    }

    /// A sentence that a user of this environment should know before it is measured.
    pub fn remark(&self) -> Option<&str> {
        match &self.how {
            How::Guest(guest) => guest.remark(),
            How::Command { .. } | How::Reach { .. } => None,
        }
    }

    /// What it is made of, in lines: of a guest the kernel, the root file system and the monitor's command; of others the command.
    ///
    /// # Errors
    /// A sentence: a file in memory cannot be made.
    pub fn details(&self) -> Result<Vec<String>, EnvironmentError> {
        match &self.how {
            How::Guest(guest) => guest.details(),
            How::Command { prepared, .. } => {
                let words = prepared.command.iter().map(|word| vm::quoted(&word.to_string_lossy()));
                Ok(vec![format!("command: {}", words.collect::<Vec<_>>().join(" "))])
            }
            How::Reach { .. } => Ok(vec![format!("behind: {}", self.spec)]),
        }
    }

    /// Reads what the host knows of it while it runs, where there is something.
    pub fn observer(&self) -> Option<Outside<'static>> {
        match &self.how {
            How::Guest(guest) => Some(guest.observer()),
            How::Command { .. } | How::Reach { .. } => None,
        }
    }

    /// The runtime that makes it, where there are several.
    pub fn runtime(&self) -> Option<&'static str> {
        match &self.how {
            How::Command { prepared, .. } => prepared.runtime,
            How::Reach { .. } | How::Guest(_) => None,
        }
    }

    /// Its name.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }
}

fn is_asked_to_stop() -> bool {
    interrupt::requested().is_some()
}

fn on_host(spec: &Spec, host: &Host) -> Result<Prepared, EnvironmentError> {
    apply::check(host)?;
    let mut arguments: Vec<OsString> = Vec::new();
    if !host.settings().is_empty() {
        arguments.extend(["--as".into(), spec.to_string().into()]);
    }
    if let Some(directory) = host.dir() {
        arguments.extend(["--dir".into(), directory.into()]);
    }
    let agent = Agent::with(&arguments)?;
    let command = [&[agent.reference()], agent.arguments()].concat();
    let variables = host.variables().map(|(name, value)| (name.into(), value.into())).collect();
    Ok(Prepared { runtime: None, command, variables, undo: Vec::new() })
}

fn in_private(
    spec: &Spec,
    paths: Paths<'_>,
    guardian: &Guardian,
    stop: &dyn Fn() -> bool,
) -> Result<Prepared, EnvironmentError> {
    let agent = Agent::with(&["--dir".into(), container::WORK.into()])?;
    match spec {
        Spec::Container(container) => container::prepare(container, &agent, paths, guardian, stop),
        Spec::Gvisor(gvisor) => gvisor::prepare(gvisor, &agent, paths),
        _ => Err(unusable!("{spec} needs no directory")),
    }
}

/// A directory in the current one, where the host's agents measure files too; None where only another user's identity would be safe
/// there, which a container's processes do not have, or where no files are measured.
fn here(guardian: &Guardian, made: &mut Vec<Promise>) -> Option<PrivateDirectory> {
    let (private, promises) = known_directory::make(&Place::open(Path::new(".")).ok()?, guardian).ok()?;
    made.extend(promises);
    Some(private)
}

/// A directory of this environment alone, from which programs can be executed.
fn private_directory(
    guardian: &Guardian,
    made: &mut Vec<Promise>,
) -> Result<PrivateDirectory, EnvironmentError> {
    let (private, promises) = known_directory::temporary(guardian, Place::can_execute)?;
    made.extend(promises);
    Ok(private)
}
