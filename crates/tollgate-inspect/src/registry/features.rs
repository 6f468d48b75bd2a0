//! Processor features that affect crossings.

use tollgate_model::Boundary::{
    Call, ClockSource, CompatFastEntry, ContextSwitch, Exception, IdleExit, InterProcessorInterrupt,
    KernelEntry, PageFault, Signal, SpecialInstruction, SplitLock, Timer, Tlb, TlbShootdown, UserCopy,
    VdsoClock, VdsoGetcpu,
};

use super::{FactSpec, bit, feature};
use crate::leaves::Register;

pub(super) const FACTS: &[FactSpec] = &[
    feature("cpu.feature.fred", bit(7, 1, Register::Eax, 17), "Flexible return and event delivery.").affects(
        &[KernelEntry, Exception],
        "FRED delivers events without a walk of the interrupt table and returns without IRET",
    ),
    feature("cpu.feature.lkgs", bit(7, 1, Register::Eax, 18), "Loading the kernel's GS base without SWAPGS."),
    feature(
        "cpu.feature.fsgsbase",
        bit(7, 0, Register::Ebx, 0),
        "Reading and writing FS and GS bases in user mode.",
    )
    .affects(
        &[ContextSwitch, Exception],
        "the kernel writes the FS and GS bases without an MSR write, at switches and at paranoid entries",
    ),
    feature(
        "cpu.feature.pcid",
        bit(1, 0, Register::Ecx, 17),
        "Process-context identifiers in page-table switches.",
    )
    .affects(
        &[KernelEntry, ContextSwitch],
        "without PCID each switch of page tables empties the TLB, under PTI at each crossing",
    ),
    feature(
        "cpu.feature.invpcid",
        bit(7, 0, Register::Ebx, 10),
        "Invalidating TLB entries of a chosen context.",
    ),
    feature("cpu.feature.smep", bit(7, 0, Register::Ebx, 7), "The kernel cannot execute user pages."),
    feature(
        "cpu.feature.smap",
        bit(7, 0, Register::Ebx, 20),
        "The kernel cannot access user pages while RFLAGS.AC is clear.",
    )
    .affects(&[KernelEntry, UserCopy], "STAC and CLAC surround each user copy, and each entry runs CLAC"),
    feature(
        "cpu.feature.umip",
        bit(7, 0, Register::Ecx, 2),
        "User mode cannot read descriptor-table registers.",
    )
    .affects(
        &[SpecialInstruction],
        "SGDT, SIDT, SLDT, STR and SMSW fault in user mode; the kernel emulates them or kills the program",
    ),
    feature(
        "cpu.feature.rdtscp",
        bit(0x8000_0001, 0, Register::Edx, 27),
        "Reading the time-stamp counter together with the processor's number.",
    )
    .affects(&[VdsoClock, ClockSource], "without RDTSCP a reading of the TSC needs a fence"),
    feature("cpu.feature.rdpid", bit(7, 0, Register::Ecx, 22), "Reading the processor's number alone.")
        .affects(&[VdsoGetcpu], "without RDPID the vDSO reads the number from a segment limit"),
    feature(
        "cpu.feature.invariant_tsc",
        bit(0x8000_0007, 0, Register::Edx, 8),
        "The time-stamp counter ticks at one rate in all states.",
    )
    .affects(&[ClockSource], "without it the kernel may read time from a slow device"),
    feature("cpu.feature.la57", bit(7, 0, Register::Ecx, 16), "Page tables of five levels.")
        .affects(&[PageFault, Tlb], "a page walk has one level more where the kernel uses five"),
    feature(
        "cpu.feature.pge",
        bit(1, 0, Register::Edx, 13),
        "Pages that stay in the TLB when page tables are switched.",
    ),
    feature("cpu.feature.sep", bit(1, 0, Register::Edx, 11), "SYSENTER and SYSEXIT.")
        .affects(&[CompatFastEntry], "without SYSENTER a 32-bit system call on Intel enters by interrupt"),
    feature("cpu.feature.syscall", bit(0x8000_0001, 0, Register::Edx, 11), "SYSCALL and SYSRET."),
    feature("cpu.feature.erms", bit(7, 0, Register::Ebx, 9), "Fast string copies with REP MOVSB.")
        .affects(&[UserCopy], "the kernel copies with REP MOVSB"),
    feature(
        "cpu.feature.fsrm",
        bit(7, 0, Register::Edx, 4),
        "REP MOVSB that is also fast for short strings.",
    )
    .affects(&[UserCopy], "the kernel copies short pieces with REP MOVSB too"),
    feature(
        "cpu.feature.invlpgb",
        bit(0x8000_0008, 0, Register::Ebx, 3),
        "Invalidating the TLBs of other processors without interrupting them.",
    )
    .affects(&[TlbShootdown], "the kernel flushes other processors without interrupting them"),
    feature(
        "cpu.feature.waitpkg",
        bit(7, 0, Register::Ecx, 5),
        "Waiting for a write to memory in user mode.",
    ),
    feature("cpu.feature.monitor", bit(1, 0, Register::Ecx, 3), "MONITOR and MWAIT.")
        .affects(&[IdleExit], "without MWAIT an idle processor halts, and an interrupt has to wake it"),
    feature(
        "cpu.feature.x2apic",
        bit(1, 0, Register::Ecx, 21),
        "Interrupt controllers with MSR access (x2APIC).",
    )
    .affects(
        &[InterProcessorInterrupt],
        "the kernel reaches an older controller through memory, which is a VM exit in a guest",
    ),
    feature("cpu.feature.tsc_deadline_timer", bit(1, 0, Register::Ecx, 24), "Timers that one MSR sets.")
        .affects(&[Timer], "one MSR write sets a timer"),
    feature("cpu.feature.pdpe1gb", bit(0x8000_0001, 0, Register::Edx, 26), "Pages of 1 GiB."),
    feature("cpu.feature.rtm", bit(7, 0, Register::Ebx, 11), "Transactions on memory."),
    feature("cpu.feature.pku", bit(7, 0, Register::Ecx, 3), "Protection keys for user pages."),
    feature("cpu.feature.user_shstk", bit(7, 0, Register::Ecx, 7), "Shadow stacks.")
        .affects(&[Call, Signal], "processes that use a shadow stack write and read it"),
    feature("cpu.feature.ibt", bit(7, 0, Register::Edx, 20), "Landing marks for indirect branches."),
    feature(
        "cpu.feature.bus_lock_detect",
        bit(7, 0, Register::Ecx, 24),
        "Traps after locks across two lines.",
    )
    .affects(&[SplitLock], "each split lock may trap"),
    feature(
        "cpu.feature.arch_capabilities",
        bit(7, 0, Register::Edx, 29),
        "An MSR that lists what the processor is not vulnerable to.",
    )
    .affects(&[KernelEntry, ContextSwitch], "the kernel does not mitigate what the MSR lists"),
    feature("cpu.feature.md_clear", bit(7, 0, Register::Edx, 10), "VERW clears buffers.")
        .affects(&[KernelEntry], "VERW clears buffers at kernel exit only with this feature"),
    feature(
        "cpu.feature.flush_l1d",
        bit(7, 0, Register::Edx, 28),
        "An MSR that flushes the first-level data cache.",
    ),
    feature(
        "cpu.feature.serialize",
        bit(7, 0, Register::Edx, 14),
        "Serializing without leaving user mode or a guest.",
    ),
    feature("cpu.feature.hybrid_cpu", bit(7, 0, Register::Edx, 15), "Cores of several kinds.")
        .affects_everything("latency depends on the kind of core"),
    feature(
        "cpu.feature.autoibrs",
        bit(0x8000_0021, 0, Register::Eax, 8),
        "Predictors that are restricted on entry without an MSR write.",
    )
    .affects(&[KernelEntry], "AMD restricts predictors on entry without an MSR write"),
    feature(
        "cpu.feature.vmx",
        bit(1, 0, Register::Ecx, 5),
        "Intel's virtualization: virtual machines can be run here.",
    ),
    feature(
        "cpu.feature.svm",
        bit(0x8000_0001, 0, Register::Ecx, 2),
        "AMD's virtualization: virtual machines can be run here.",
    ),
];
