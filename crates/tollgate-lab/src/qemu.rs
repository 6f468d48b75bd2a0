//! QEMU, if it is installed: its translator (TCG), which runs everywhere and can count instructions, or KVM within
//! QEMU's machine.
//!
//! - `image`: whether its loader can take an image. `process`: one QEMU, from its start to its end.
//!
//! Source: QEMU's manual page, qemu-system-x86_64(1), and hw/misc/debugexit.c.

mod image;
mod process;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tollgate_os::{memfd, programs::find_in};
use tollgate_x86::Vendor;

use tollgate_kvm::{out_of_patience, written};

use crate::host::{fits, plainly};
use crate::{Engine, LabError, Machine, Output, Provenance};
use process::{End, Process};

const PROGRAM: &str = "qemu-system-x86_64";
const PATIENCE_FOR_VERSION: Duration = Duration::from_secs(10);
const MIB: usize = 1 << 20;

/// The accelerator that executes the guest's code within QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Accelerator {
    /// QEMU's translator.
    Tcg {
        /// Whether instructions are counted (`-icount shift=0`): the time-stamp counter then advances by one per
        /// instruction, and the guest's output is the same in each run. Otherwise the counter shows the host's time.
        icount: bool,
    },
    /// KVM.
    Kvm,
}

/// An installed QEMU.
#[derive(Debug, Clone)]
pub struct Qemu {
    program: PathBuf,
    accelerator: Accelerator,
}

impl Qemu {
    /// Looks for QEMU along PATH and asks for its version. By default it translates and counts instructions.
    ///
    /// # Errors
    /// [`LabError::Unavailable`] if it is absent, or prints no version.
    pub fn find() -> Result<Self, LabError> {
        Self::find_in(&std::env::var_os("PATH").unwrap_or_default())
    }

    fn find_in(path: &OsStr) -> Result<Self, LabError> {
        let program = find_in(PROGRAM, path).ok_or_else(|| {
            unavailable(format!("{PROGRAM} is not in PATH (usually it is in the package qemu-system-x86)"))
        })?;
        is_qemu(&program)?;
        Ok(Self { program, accelerator: Accelerator::Tcg { icount: true } })
    }

    /// Returns the same program with another accelerator.
    #[must_use]
    pub fn with(mut self, accelerator: Accelerator) -> Self {
        self.accelerator = accelerator;
        self
    }

    /// Returns all arguments but the image. The machine has a serial port, a port that ends it, and no optional
    /// devices; a triple fault ends it instead of restarting it.
    fn arguments(&self, machine: Machine) -> Vec<String> {
        let mut arguments = vec!["-accel", if self.accelerator == Accelerator::Kvm { "kvm" } else { "tcg" }];
        if self.accelerator == (Accelerator::Tcg { icount: true }) {
            // While the guest waits for its timer, virtual time advances at once.
            arguments.extend(["-icount", "shift=0,sleep=off"]);
        }
        let mib = machine.memory.div_ceil(MIB).to_string();
        // Each has SYSENTER, SYSCALL and, if QEMU supports it, PCID. The translator follows the vendor where the two
        // differ. Features that it lacks are left out without a warning (`check=off`).
        let processor = match (self.accelerator, machine.vendor) {
            (Accelerator::Kvm, _) => "host",
            (_, Some(Vendor::Amd)) => "EPYC,check=off",
            (_, Some(Vendor::Intel) | None) => "Haswell,check=off",
        };
        arguments.extend(["-cpu", processor, "-m", &mib]);
        arguments.extend(["-nodefaults", "-no-user-config", "-no-reboot"]);
        arguments.extend(["-display", "none", "-serial", "stdio"]);
        arguments.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        arguments.into_iter().map(str::to_owned).collect()
    }
}

impl Engine for Qemu {
    /// The image needs a multiboot header that states the same `base` and `entry`. With KVM the processor is the
    /// host's; otherwise it is Intel's by default. `machine.instructions` is ignored. A halted guest cannot be detected
    /// from outside, so it runs until its time is over.
    fn run(&self, image: &[u8], base: u64, entry: u64, machine: Machine) -> Result<Output, LabError> {
        let started = Instant::now();
        fits(image, base, machine)?;
        image::check(image, base, entry).map_err(unavailable)?;
        // In memory, so no file can be left over.
        let mut file = memfd::create("tollgate-guest").map_err(failed)?;
        file.write_all(image).map_err(failed)?;
        let mut process =
            Process::start(&self.program, &self.arguments(machine), Some(file.into())).map_err(failed)?;
        let deadline = started.checked_add(machine.patience);
        let mut serial = Vec::new();
        let end = process.listen(deadline, |bytes| written(&mut serial, bytes)).map_err(failed)?;
        let cut_short = match end {
            End::Refused(why) => Some(why),
            End::TimeIsOver => Some(out_of_patience(machine.patience)),
            End::Exited(status) => match outcome(status, process.complaint()) {
                Ok(cut_short) => cut_short,
                // The guest wrote nothing: it may never have begun.
                Err(why) if serial.is_empty() => return Err(unavailable(why)),
                Err(why) => Some(format!("QEMU ended: {why}")),
            },
        };
        let provenance = match self.accelerator {
            Accelerator::Tcg { icount } => Provenance::QemuTcg { icount },
            Accelerator::Kvm => Provenance::QemuKvm,
        };
        Ok(Output { serial, provenance, cut_short, memory: None, counts: None, unknown: Vec::new() })
    }
}

/// Returns `None` if the guest ended itself, a clause if its processor did, and QEMU's message if QEMU itself failed.
fn outcome(status: ExitStatus, complaint: Option<String>) -> Result<Option<String>, String> {
    match (status.code(), complaint) {
        (Some(0), _) => Ok(Some("its processor was reset, usually by a triple fault".to_owned())),
        // A byte 0 to F4h gives status 1. So does an error of QEMU, which comes with a message.
        (Some(1), Some(complaint)) => Err(complaint),
        // isa-debug-exit: the value, shifted, and 1.
        (Some(code), _) if code & 1 == 1 => Ok(None),
        (_, Some(complaint)) => Err(complaint),
        (_, None) => Err(format!("it failed: {status}")),
    }
}

/// Checks that a program prints QEMU's version: `QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
fn is_qemu(program: &Path) -> Result<(), LabError> {
    let mut process = Process::start(program, &["--version".to_owned()], None).map_err(failed)?;
    let mut said = Vec::new();
    let deadline = Instant::now().checked_add(PATIENCE_FOR_VERSION);
    process.listen(deadline, |bytes| written(&mut said, bytes)).map_err(failed)?;
    let said = String::from_utf8_lossy(&said);
    let number = said.split_once("QEMU emulator version ").map(|(_, number)| number);
    if number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit())) {
        return Ok(());
    }
    let line: String = said.lines().next().unwrap_or_default().chars().take(80).collect();
    Err(unavailable(format!("{} does not print its version: {line:?}", program.display())))
}

fn unavailable(why: String) -> LabError {
    LabError::Unavailable { engine: "QEMU", why }
}

fn failed(error: std::io::Error) -> LabError {
    unavailable(plainly(error))
}
