//! The boundaries of a machine that benchmarks cross and facts affect. A fact can be a cause of a difference only where
//! the two have a boundary in common.

use std::fmt;

/// A boundary of the machine, or a mechanism that a crossing runs through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boundary {
    /// The way from user mode into the kernel and back, by any instruction or event: the entry code of
    /// arch/x86/entry, with its mitigations.
    KernelEntry,
    /// The dispatch of a system call in the kernel: its table, and the slow path of seccomp, audit, ptrace and tracing.
    SystemCall,
    /// The run of a seccomp filter.
    SeccompFilter,
    /// The entries of 32-bit programs: `int 0x80`, and SYSENTER or SYSCALL in 32-bit mode (entry_64_compat.S).
    CompatEntry,
    /// The entry that the vDSO of 32-bit programs chooses: SYSENTER on Intel, SYSCALL on AMD.
    CompatFastEntry,
    /// The vsyscall page, which old programs call for the time.
    Vsyscall,
    /// The submission to io_uring and the reaping of its completions.
    IoUring,
    /// The kernel's own code between entry and exit: its calls, indirect branches, returns and locks.
    KernelCode,
    /// The size of the kernel's own functions.
    KernelImage,
    /// The allocation of objects and pages for the kernel's own use.
    KernelAllocation,
    /// A copy between the kernel and memory of the program.
    UserCopy,
    /// A clock that is read through the vDSO.
    VdsoClock,
    /// The number of the processor, read through the vDSO.
    VdsoGetcpu,
    /// The clock source that the kernel keeps time by, read in user mode or by system call.
    ClockSource,
    /// RDTSC and RDTSCP in user mode.
    TimeStampCounter,
    /// A timer that is set, and expires.
    Timer,
    /// A sleep or a wait with a time limit, which ends by an hrtimer.
    Sleep,
    /// An event that the processor delivers through the interrupt table or FRED: a fault, a trap, `int n`.
    Exception,
    /// A page fault that the kernel resolves: it finds or makes a page and maps it.
    PageFault,
    /// Entries of the TLB that are missing or thrown away on the same processor, and the walks that fill them.
    Tlb,
    /// Entries of the TLB that other processors have to throw away.
    TlbShootdown,
    /// A signal: its delivery on a frame, and rt_sigreturn(2).
    Signal,
    /// A signal that a process sends by kill(2) or tgkill(2), with the checks of permission.
    SignalSend,
    /// An exit from a virtual machine to its hypervisor, and the entry back.
    VmExit,
    /// An entry into a guest that this kernel runs.
    GuestEntry,
    /// A load or a store that a cache or memory answers, without another processor.
    MemoryAccess,
    /// A cache line that moves from one processor's cache to another's.
    CacheLine,
    /// A locked instruction or a full fence.
    Atomic,
    /// A locked instruction across two cache lines, which locks the bus.
    SplitLock,
    /// A load soon after a store, which may be answered from the store buffer.
    StoreForwarding,
    /// A near call and its return in user mode.
    Call,
    /// RDRAND, RDSEED and getrandom(2).
    Random,
    /// An instruction that microcode slows or that faults and is emulated: gathers, SGDT and its like.
    SpecialInstruction,
    /// Instructions of the program itself, without a crossing: the baseline of others.
    UserCode,
    /// A hardware counter of events.
    PerformanceCounter,
    /// A lock of a program that several threads want at once.
    LockContention,
    /// A switch from one thread to another on the same processor.
    ContextSwitch,
    /// The wake-up of a thread that sleeps: try_to_wake_up() in kernel/sched/core.c.
    WakeUp,
    /// An interrupt that one processor sends to another.
    InterProcessorInterrupt,
    /// The way of a processor out of its idle state.
    IdleExit,
    /// The creation of a task: fork(2), clone(2), a thread.
    ProcessCreation,
    /// The copy of an address space: page tables and mappings (dup_mmap() in mm/mmap.c).
    AddressSpaceCopy,
    /// The end of a task, until it is waited for.
    ProcessExit,
    /// The memory that a process or thread takes: pages, page tables, kernel objects.
    ProcessMemory,
    /// execve(2): one program becomes another.
    Exec,
    /// The lookup of a path, with the checks of permission on the way.
    PathLookup,
    /// Pages of files in memory: found, filled, made dirty.
    PageCache,
    /// The metadata of a file system: names, inodes, extents, the journal.
    FileSystem,
    /// Pages that are read from storage ahead of the reader.
    ReadAhead,
    /// A read request to a block device.
    BlockRead,
    /// A write request to a block device.
    BlockWrite,
    /// A flush of a block device's write cache.
    DeviceFlush,
    /// A socket and the packets through it.
    Socket,
}

impl Boundary {
    /// Its name in a list of them: `kernel entry`, `page faults`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KernelEntry => "kernel entry",
            Self::SystemCall => "system calls",
            Self::SeccompFilter => "seccomp filters",
            Self::CompatEntry => "32-bit kernel entry",
            Self::CompatFastEntry => "32-bit fast entry",
            Self::Vsyscall => "vsyscall page",
            Self::IoUring => "io_uring",
            Self::KernelCode => "kernel code",
            Self::KernelImage => "kernel image",
            Self::KernelAllocation => "kernel allocation",
            Self::UserCopy => "user copies",
            Self::VdsoClock => "vDSO clocks",
            Self::VdsoGetcpu => "vDSO getcpu",
            Self::ClockSource => "clock source",
            Self::TimeStampCounter => "time-stamp counter",
            Self::Timer => "timers",
            Self::Sleep => "timed waits",
            Self::Exception => "exceptions",
            Self::PageFault => "page faults",
            Self::Tlb => "TLB",
            Self::TlbShootdown => "TLB shootdowns",
            Self::Signal => "signals",
            Self::SignalSend => "signal sending",
            Self::VmExit => "VM exits",
            Self::GuestEntry => "guest entry",
            Self::MemoryAccess => "memory access",
            Self::CacheLine => "cache-line transfers",
            Self::Atomic => "atomic operations",
            Self::SplitLock => "split locks",
            Self::StoreForwarding => "loads after stores",
            Self::Call => "calls and returns",
            Self::Random => "random numbers",
            Self::SpecialInstruction => "special instructions",
            Self::UserCode => "user code",
            Self::PerformanceCounter => "performance counters",
            Self::LockContention => "lock contention",
            Self::ContextSwitch => "context switches",
            Self::WakeUp => "wake-ups",
            Self::InterProcessorInterrupt => "inter-processor interrupts",
            Self::IdleExit => "idle exit",
            Self::ProcessCreation => "process creation",
            Self::AddressSpaceCopy => "address-space copies",
            Self::ProcessExit => "process exit",
            Self::ProcessMemory => "process memory",
            Self::Exec => "exec",
            Self::PathLookup => "path lookup",
            Self::PageCache => "page cache",
            Self::FileSystem => "file-system metadata",
            Self::ReadAhead => "read-ahead",
            Self::BlockRead => "block reads",
            Self::BlockWrite => "block writes",
            Self::DeviceFlush => "device flushes",
            Self::Socket => "sockets",
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The extent of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Every latency, such as the processor's frequency does: a cause of no difference in particular.
    Everything,
    /// Cases that cross one of these boundaries.
    Boundaries(&'static [Boundary]),
}

impl Reach {
    /// Whether a case that crosses these boundaries can be affected.
    pub fn meets(self, mut crossed: impl Iterator<Item = Boundary>) -> bool {
        match self {
            Self::Everything => true,
            Self::Boundaries(affected) => crossed.any(|boundary| affected.contains(&boundary)),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let boundaries = match self {
            Self::Everything => return f.write_str("every latency"),
            Self::Boundaries(boundaries) => boundaries,
        };
        for (at, boundary) in boundaries.iter().enumerate() {
            let before = match at {
                0 => "",
                _ if at + 1 == boundaries.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{boundary}")?;
        }
        Ok(())
    }
}

/// The effect of a fact of the machine, or of an option of its kernel.
///
/// Shown as `kernel entry and system calls: …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// What it affects.
    pub reach: Reach,
    /// How, in a sentence without its full stop.
    pub how: &'static str,
}

impl Effect {
    /// An effect on cases that cross one of these boundaries.
    pub const fn on(boundaries: &'static [Boundary], how: &'static str) -> Self {
        Self { reach: Reach::Boundaries(boundaries), how }
    }

    /// An effect on every latency.
    pub const fn on_everything(how: &'static str) -> Self {
        Self { reach: Reach::Everything, how }
    }

    /// Whether it affects everything alike.
    pub const fn is_general(&self) -> bool {
        matches!(self.reach, Reach::Everything)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reach, self.how)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_meets_what_crosses_one_of_its_boundaries() {
        let crossed = || [Boundary::KernelEntry, Boundary::SystemCall].into_iter();
        let on = |boundaries: &'static [Boundary]| Reach::Boundaries(boundaries);
        assert!(on(&[Boundary::Signal, Boundary::SystemCall]).meets(crossed()));
        assert!(!on(&[Boundary::Signal]).meets(crossed()));
        assert!(!on(&[]).meets(crossed()));
        assert!(!on(&[Boundary::Signal]).meets(std::iter::empty()));
        assert!(Reach::Everything.meets(std::iter::empty()));
    }

    #[test]
    fn an_effect_is_shown_with_what_it_affects() {
        let shown = |boundaries: &'static [Boundary]| Effect::on(boundaries, "a filter runs").to_string();
        assert_eq!(shown(&[Boundary::SystemCall]), "system calls: a filter runs");
        assert_eq!(
            shown(&[Boundary::KernelEntry, Boundary::Signal, Boundary::PageFault]),
            "kernel entry, signals and page faults: a filter runs"
        );
        assert_eq!(
            Effect::on_everything("the clock is slow").to_string(),
            "every latency: the clock is slow"
        );
    }
}
