//! A guest with a Linux of its own, in QEMU: this program is its `/init`, and an agent there.
//!
//! `kernel`: the file that is booted, and its release. `modules`: what of the kernel's modules the guest needs. `initramfs`: its root file
//! system, made in memory. `qemu`: the monitor and its arguments. `monitor`: a running one, by its protocol (`qmp`) and its log of
//! instructions (`log`). `init`: the guest's side, from `/init` to the agent. `layout`: what both sides know of the guest's files and of
//! the kernel's command line.

mod init;
mod initramfs;
mod kernel;
mod layout;
mod log;
mod modules;
mod monitor;
mod qemu;
mod qmp;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::agent::Agent;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::spec::{Accel, Vm};

pub use init::serve_if_init;
use initramfs::Initramfs;
use kernel::Kernel;
use modules::Modules;
pub use monitor::GuestLog;
use monitor::{Monitor, Running};
use qemu::{Channel, Machine, Qemu};

/// A guest that is ready to be started.
pub(crate) struct Guest {
    qemu: Qemu,
    kernel: Kernel,
    machine: Machine,
    initramfs: File,
    /// The guest's messages: the kernel's, and those of `/init`.
    console: PathBuf,
    running: Running,
}

/// A command that runs a guest, and the files that it inherits under their own numbers.
pub(crate) struct Launch {
    pub command: Vec<OsString>,
    pub files: Vec<File>,
}

impl Guest {
    /// Prepares one: finds QEMU, the kernel and its modules, and makes the root file system. `private` is a directory of this
    /// environment alone.
    ///
    /// # Errors
    /// A sentence: what is missing, with its package.
    pub fn prepare(spec: &Vm, private: &Path) -> Result<Self, EnvironmentError> {
        let qemu = Qemu::find()?;
        let kernel = Kernel::find(spec.kernel.as_deref())?;
        let accel = accel(spec)?;
        let mut modules = Modules::of(&kernel);
        let channel = Channel::of(&modules, spec.vmm)?;
        for name in channel.modules(spec.vmm) {
            modules.choose(name).map_err(|why| unusable!("vm: {kernel}: {why}"))?;
        }
        let machine = Machine::of(spec, accel, channel);
        let agent = Agent::with(&["--dir".into(), layout::WORK.into()])?;
        let initramfs = root(&agent, &kernel, &modules, &machine)?;
        Ok(Self {
            qemu,
            kernel,
            machine,
            initramfs,
            console: private.join("console"),
            running: Running::default(),
        })
    }

    /// The command of a start.
    ///
    /// # Errors
    /// A sentence: a file in memory, a socket or a pipe cannot be made.
    pub fn launch(&self) -> Result<Launch, EnvironmentError> {
        let fault = |error: std::io::Error| unusable!("vm: the initramfs: {}", plainly(error));
        let initramfs = self.initramfs.try_clone().map_err(fault)?;
        let (monitor, ends) =
            Monitor::new().map_err(|error| unusable!("vm: its monitor: {}", plainly(error)))?;
        let command = self.qemu.command(&self.machine, &self.kernel, &initramfs, &self.console, &ends);
        self.running.replace(Some(monitor));
        Ok(Launch { command, files: vec![initramfs, ends.socket, ends.log] })
    }

    /// The log of its instructions, where the translator executes them.
    pub fn log(&self) -> Option<GuestLog> {
        self.is_counting().then(|| GuestLog(self.running.clone()))
    }

    /// Whether its time stamp counter counts instructions.
    pub fn is_counting(&self) -> bool {
        self.machine.is_counting()
    }

    /// The reader of the last words of a guest that ended.
    pub fn last_words(&self) -> Box<dyn Fn() -> Option<String>> {
        let console = self.console.clone();
        Box::new(move || qemu::last_words(&console))
    }
}

/// QEMU's version, and the kernel that a guest has where none is named.
///
/// # Errors
/// A sentence: what is missing, with its package.
pub(crate) fn survey(stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
    let version = Qemu::find()?.version(stop)?;
    let kernel = Kernel::find(None)?;
    Ok(format!("{version}; {kernel}"))
}

/// What executes the guest's code.
fn accel(spec: &Vm) -> Result<Accel, EnvironmentError> {
    match spec.accel {
        Some(Accel::Kvm) => Err(unusable!("vm: accel=kvm is not built yet")),
        Some(Accel::Tcg) | None => Ok(Accel::Tcg),
    }
}

/// The root file system.
fn root(
    agent: &Agent,
    kernel: &Kernel,
    modules: &Modules,
    machine: &Machine,
) -> Result<File, EnvironmentError> {
    let mut made = Initramfs::new().map_err(|error| unusable!("vm: the initramfs: {}", plainly(error)))?;
    let mut fill = || -> std::io::Result<()> {
        for directory in layout::DIRECTORIES {
            made.directory(directory)?;
        }
        made.program("init", &mut agent.file()?)?;
        made.file(layout::MARK, machine.channel.name().as_bytes())?;
        for (name, bytes) in modules.files()? {
            made.file(&format!("{}/{name}", layout::MODULES), &bytes)?;
        }
        for (path, bytes) in kernel.facts() {
            made.file(&path, &bytes)?;
        }
        Ok(())
    };
    fill().map_err(|error| unusable!("vm: the initramfs: {}", plainly(error)))?;
    made.finish().map_err(|error| unusable!("vm: the initramfs: {}", plainly(error)))
}
