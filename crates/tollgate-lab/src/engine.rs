//! The interface of the engines that run a guest.

use std::time::Duration;

use tollgate_x86::Vendor;

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
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    /// KVM, on the processor itself: its times are latencies.
    Kvm,
    /// KVM that emulates ring 0: its times are no latencies. Why that is known, in a clause.
    KvmEmulated { why: String },
    /// QEMU, with KVM.
    QemuKvm,
    /// QEMU's translator. With instructions counted, its clock shows their number.
    QemuTcg { icount: bool },
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
    /// Instructions of ring 3 that the engine does not know, in their order. The guest was told of each.
    pub unknown: Vec<Unknown>,
}

/// The counters of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Instructions that were completed, and those that were refused: see [`Interpreter`](crate::Interpreter).
    pub instructions: u64,
    /// Reads of memory by instructions and by crossings: of data, stacks and tables. Instruction fetches are not counted.
    pub reads: u64,
    /// Writes of memory by the same.
    pub writes: u64,
    /// Translations of a linear address that were not at hand, so that the page tables were walked.
    pub page_walks: u64,
    /// Entries of page tables that were read in them.
    pub page_entries: u64,
}

/// An instruction that an engine does not know. It was not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its address.
    pub rip: u64,
    /// Its bytes, as far as its page goes.
    pub bytes: Vec<u8>,
    /// How it reads, in Intel's syntax.
    pub text: String,
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
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The bytes of the image, loaded at its base, do not fit into the bytes of memory.
    #[error("an image of {image} bytes at {base:x} does not fit into {memory} bytes of memory")]
    TooLarge { image: usize, base: u64, memory: usize },
    /// The engine is not there, or may not be used: why, in a clause.
    #[error("{engine} cannot be used: {why}")]
    Unavailable { engine: &'static str, why: String },
    /// Programs that do not fit into a machine.
    #[error(transparent)]
    Programs(#[from] crate::program::ArchiveError),
    /// The guest did not finish: why, in a clause.
    #[error("the guest did not finish: {why}")]
    Unfinished { why: String },
    /// A signal asked the program to stop, by its number in signal(7).
    #[error("stopped by signal {signal}")]
    Interrupted { signal: i32 },
}
