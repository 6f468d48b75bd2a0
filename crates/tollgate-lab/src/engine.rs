use std::time::Duration;

use tollgate_x86::Vendor;

/// A machine that a guest is to run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory, from address 0.
    pub memory: usize,
    /// The processor's vendor, if the engine can choose; `None` for the host's.
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
    /// KVM on the processor itself: its times are latencies.
    Kvm,
    /// KVM that emulates ring 0, so its times are not latencies; `why` says in a clause how that is known.
    KvmEmulated { why: String },
    /// QEMU, with KVM.
    QemuKvm,
    /// QEMU's translator. With `icount` its clock shows the number of instructions.
    QemuTcg { icount: bool },
    /// The interpreter: its clock counts instructions.
    Interpreter,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Bytes that the guest wrote to its serial port.
    pub serial: Vec<u8>,
    /// Executor of the guest's code.
    pub provenance: Provenance,
    /// Why the run ended, in a clause; `None` if the guest ended it.
    pub cut_short: Option<String>,
    /// The guest's memory at the end, if the engine knows it.
    pub memory: Option<Vec<u8>>,
    /// Counters, if the engine counts.
    pub counts: Option<Counts>,
    /// Instructions of ring 3 that the engine does not know, in order. The guest was told of each.
    pub unknown: Vec<Unknown>,
}

/// The counters of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Instructions that were completed or refused: see [`Interpreter`](crate::Interpreter).
    pub instructions: u64,
    /// Reads of memory by instructions and by crossings: of data, stacks and tables. Instruction fetches are not counted.
    pub reads: u64,
    /// Writes of memory by instructions and by crossings.
    pub writes: u64,
    /// Translations of a linear address that were not cached, so that the page tables were walked.
    pub page_walks: u64,
    /// Page-table entries that these walks read.
    pub page_entries: u64,
}

/// An instruction that an engine does not know. It was not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Address of the instruction.
    pub rip: u64,
    /// Bytes of the instruction, at most to the end of its page.
    pub bytes: Vec<u8>,
    /// The instruction in Intel's syntax.
    pub text: String,
}

/// Something that runs guests.
pub trait Engine {
    /// Loads `image` at `base` and runs it from `entry`, in flat 32-bit protected mode as multiboot leaves it, until it
    /// ends itself (a byte to port F4h) or is stopped.
    ///
    /// # Errors
    /// [`LabError`] if it could not be run at all. If it was stopped, or the engine could not go on, the result is an
    /// [`Output`] with the text written so far.
    fn run(&self, image: &[u8], base: u64, entry: u64, machine: Machine) -> Result<Output, LabError>;
}

/// Why a guest was not run.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The image, loaded at its base, does not fit into memory.
    #[error("an image of {image} bytes at {base:x} does not fit into {memory} bytes of memory")]
    TooLarge { image: usize, base: u64, memory: usize },
    /// The guest is code of x86-64, which a program for another architecture does not have.
    #[error("the lab's guest is code of x86-64, which tollgate for {} does not have", std::env::consts::ARCH)]
    NoGuest,
    /// The engine is absent or may not be used; `why` is a clause.
    #[error("{engine} cannot be used: {why}")]
    Unavailable { engine: &'static str, why: String },
    /// The programs do not fit into a machine.
    #[error(transparent)]
    Programs(#[from] crate::program::ArchiveError),
    /// The guest did not finish; `why` is a clause.
    #[error("the guest did not finish: {why}")]
    Unfinished { why: String },
    /// A signal, by its number in signal(7), asked the program to stop.
    #[error("stopped by signal {signal}")]
    Interrupted { signal: i32 },
}
