//! The boundaries of a machine: a fact can be the cause of a difference only if both have a boundary in common.

use std::fmt;

use crate::text::listed;

macro_rules! boundaries {
    ($($(#[$doc:meta])+ $boundary:ident $name:literal;)+) => {
        /// A boundary of the machine, or a mechanism that a crossing runs through.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Boundary {
            $($(#[$doc])+ $boundary,)+
        }

        impl Boundary {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$boundary),+];

            /// Name in a list of boundaries: `kernel entry`, `page faults`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$boundary => $name,)+
                }
            }
        }
    };
}

boundaries! {
    /// Entry from user mode into the kernel and the return, by any instruction or event: the code of arch/x86/entry, with its
    /// mitigations.
    KernelEntry "kernel entry";
    /// The dispatch of a system call in the kernel: its table, and the slow path of seccomp, audit, ptrace and tracing.
    SystemCall "system calls";
    /// A run of a seccomp filter.
    SeccompFilter "seccomp filters";
    /// The entries of 32-bit programs: `int 0x80`, and SYSENTER or SYSCALL in 32-bit mode (entry_64_compat.S).
    CompatEntry "32-bit kernel entry";
    /// The entry that the vDSO of 32-bit programs chooses: SYSENTER on Intel, SYSCALL on AMD.
    CompatFastEntry "32-bit fast entry";
    /// The vsyscall page, which old programs call for the time.
    Vsyscall "vsyscall page";
    /// The submission to io_uring and the reaping of its completions.
    IoUring "io_uring";
    /// The kernel's own code between entry and exit: its calls, indirect branches, returns and locks.
    KernelCode "kernel code";
    /// The size of the kernel's own functions.
    KernelImage "kernel image";
    /// The allocation of objects and pages for the kernel's own use.
    KernelAllocation "kernel allocation";
    /// A copy between the kernel and memory of the program.
    UserCopy "user copies";
    /// A clock that is read through the vDSO.
    VdsoClock "vDSO clocks";
    /// The number of the processor, read through the vDSO.
    VdsoGetcpu "vDSO getcpu";
    /// The clock source that the kernel keeps time by, read in user mode or by system call.
    ClockSource "clock source";
    /// RDTSC and RDTSCP in user mode.
    TimeStampCounter "time-stamp counter";
    /// A timer that is set, and expires.
    Timer "timers";
    /// A sleep or a wait with a time limit, which ends by an hrtimer.
    Sleep "timed waits";
    /// An event that the processor delivers through the interrupt table or FRED: a fault, a trap, `int n`.
    Exception "exceptions";
    /// A page fault that the kernel resolves: it finds or makes a page and maps it.
    PageFault "page faults";
    /// TLB entries that are missing or discarded on the same processor, and the walks that fill them.
    Tlb "TLB";
    /// TLB entries that other processors must discard.
    TlbShootdown "TLB shootdowns";
    /// A signal: its delivery on a frame, and rt_sigreturn(2).
    Signal "signals";
    /// A signal that a process sends by kill(2) or tgkill(2), with the checks of permission.
    SignalSend "signal sending";
    /// An exit from a virtual machine to its hypervisor, and the entry back.
    VmExit "VM exits";
    /// An entry into a guest that this kernel runs.
    GuestEntry "guest entry";
    /// A load or a store that a cache or memory answers, without another processor.
    MemoryAccess "memory access";
    /// A cache line that moves from one processor's cache to another's.
    CacheLine "cache-line transfers";
    /// A locked instruction or a full fence.
    Atomic "atomic operations";
    /// A locked instruction across two cache lines, which locks the bus.
    SplitLock "split locks";
    /// A load soon after a store, which may be answered from the store buffer.
    StoreForwarding "loads after stores";
    /// A near call and its return in user mode.
    Call "calls and returns";
    /// RDRAND, RDSEED and getrandom(2).
    Random "random numbers";
    /// An instruction that microcode slows or that faults and is emulated: gathers, SGDT and its like.
    SpecialInstruction "special instructions";
    /// Instructions of the program itself, without a crossing: the baseline of others.
    UserCode "user code";
    /// A hardware counter of events.
    PerformanceCounter "performance counters";
    /// A lock of a program that several threads want at once.
    LockContention "lock contention";
    /// A switch from one thread to another on the same processor.
    ContextSwitch "context switches";
    /// The wake-up of a thread that sleeps: try_to_wake_up() in kernel/sched/core.c.
    WakeUp "wake-ups";
    /// An interrupt that one processor sends to another.
    InterProcessorInterrupt "inter-processor interrupts";
    /// The exit of a processor from its idle state.
    IdleExit "idle exit";
    /// The creation of a task: fork(2), clone(2), a thread.
    ProcessCreation "process creation";
    /// The copy of an address space: page tables and mappings (dup_mmap() in mm/mmap.c).
    AddressSpaceCopy "address-space copies";
    /// The end of a task, until it is waited for.
    ProcessExit "process exit";
    /// The memory that a process or thread takes: pages, page tables, kernel objects.
    ProcessMemory "process memory";
    /// execve(2): one program becomes another.
    Exec "exec";
    /// The lookup of a path, with the checks of permission on the way.
    PathLookup "path lookup";
    /// Pages of files in memory: found, filled, dirtied.
    PageCache "page cache";
    /// The metadata of a file system: names, inodes, extents, the journal.
    FileSystem "file-system metadata";
    /// Pages that are read from storage before the reader asks for them.
    ReadAhead "read-ahead";
    /// A read request to a block device.
    BlockRead "block reads";
    /// A write request to a block device.
    BlockWrite "block writes";
    /// A flush of a block device's write cache.
    DeviceFlush "device flushes";
    /// A socket and the packets through it.
    Socket "sockets";
}

impl Boundary {
    /// The name as one word of a command line: `kernel-entry`, `vdso-clocks`.
    pub fn word(self) -> String {
        self.name().to_lowercase().replace([' ', '_'], "-")
    }

    /// Returns the boundary of a name, as [`Boundary::name`] or [`Boundary::word`] writes it, in upper or lower case.
    pub fn named(name: &str) -> Option<Self> {
        let word = name.to_lowercase().replace([' ', '_'], "-");
        Self::ALL.iter().copied().find(|boundary| boundary.word() == word)
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
    /// Every latency, as the processor's frequency affects it: not a cause of any particular difference.
    Everything,
    /// Cases that cross one of these boundaries.
    Boundaries(&'static [Boundary]),
}

impl Reach {
    /// Returns whether a case that crosses these boundaries can be affected.
    pub fn meets(self, mut crossed: impl Iterator<Item = Boundary>) -> bool {
        match self {
            Self::Everything => true,
            Self::Boundaries(affected) => crossed.any(|boundary| affected.contains(&boundary)),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("every latency"),
            Self::Boundaries(boundaries) => f.write_str(&listed(boundaries)),
        }
    }
}

/// The effect of a fact of the machine, or of an option of its kernel, shown as `kernel entry and system calls: …`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// The affected latencies.
    pub reach: Reach,
    /// How it affects them: a sentence without its full stop.
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

    /// Returns whether it affects everything.
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
    fn a_boundary_is_found_by_its_name_in_either_form() {
        for &boundary in Boundary::ALL {
            assert_eq!(Boundary::named(boundary.name()), Some(boundary));
            assert_eq!(Boundary::named(&boundary.word()), Some(boundary));
            assert!(!boundary.word().contains(' '), "{boundary}");
        }
        assert_eq!(Boundary::named("Kernel entry"), Some(Boundary::KernelEntry));
        assert_eq!(Boundary::named("kernel"), None);
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
