//! The interface of the engines that run a guest.

use std::time::Duration;

use tollgate_x86::Vendor;

use crate::interpreter::Counts;

/// A machine that a guest is to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory, from address 0.
    pub memory: usize,
    /// The processor's vendor, where the engine can choose; none for the host's.
    pub vendor: Option<Vendor>,
    /// The limit of wall-clock time.
    pub patience: Duration,
    /// The limit of instructions, for engines that count them.
    pub instructions: u64,
}

/// The executor of the guest's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    /// KVM, on the processor itself: its times are latencies.
    Kvm,
    /// KVM that emulates ring 0: its times are no latencies.
    KvmEmulated {
        /// How that was detected, in a clause.
        why: String,
    },
    /// QEMU, with KVM.
    QemuKvm,
    /// QEMU's translator; with instructions counted, its clock shows their number.
    QemuTcg {
        /// Whether instructions are counted.
        icount: bool,
    },
    /// The interpreter: its clock counts instructions.
    Interpreter,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The guest's output on its serial port.
    pub serial: Vec<u8>,
    /// The executor.
    pub provenance: Provenance,
    /// Why it ended, where the guest did not end it: a clause.
    pub cut_short: Option<String>,
    /// The guest's memory at the end, where the engine knows it.
    pub memory: Option<Vec<u8>>,
    /// The counters, of engines that count.
    pub counts: Option<Counts>,
}

/// Something that runs guests.
pub trait Engine {
    /// Loads `image` at `base` and runs it from `entry`, in flat 32-bit protected mode as multiboot leaves it, until
    /// it ends itself (a byte to port F4h) or is stopped.
    ///
    /// # Errors
    /// [`LabError`] where it could not be run at all. That it was stopped, or that the engine could not go on, is an
    /// [`Output`] with the text written so far.
    fn run(&self, image: &[u8], base: u64, entry: u64, machine: Machine) -> Result<Output, LabError>;
}

/// Why a guest was not run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The image and what it needs do not fit into the memory.
    #[error("an image of {image} bytes at {base:x} does not fit into {memory} bytes of memory")]
    TooLarge {
        /// Bytes of the image.
        image: usize,
        /// Where it is loaded.
        base: u64,
        /// Bytes of memory.
        memory: usize,
    },
    /// The engine is not there, or may not be used.
    #[error("{engine} cannot be used: {why}")]
    Unavailable {
        /// Which.
        engine: &'static str,
        /// Why, in a clause.
        why: String,
    },
    /// The guest did not finish.
    #[error("the guest did not finish: {why}")]
    Unfinished {
        /// Why, in a clause.
        why: String,
    },
    /// A signal asked the program to stop.
    #[error("stopped by signal {signal}")]
    Interrupted {
        /// Its number, signal(7).
        signal: i32,
    },
}
