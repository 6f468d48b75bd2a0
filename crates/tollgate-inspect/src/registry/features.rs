//! Features of the processor that bear on crossings.

use super::{FactSpec, bit, feature};
use crate::leaves::Register;

pub(super) const FACTS: &[FactSpec] = &[
    feature("cpu.feature.fred", bit(7, 1, Register::Eax, 17), "Flexible return and event delivery.").moves(
        "kernel entry and traps: events are delivered without the interrupt table's walk and \
         return without IRET",
    ),
    feature("cpu.feature.lkgs", bit(7, 1, Register::Eax, 18), "Loading the kernel's GS base without SWAPGS."),
    feature(
        "cpu.feature.fsgsbase",
        bit(7, 0, Register::Ebx, 0),
        "Reading and writing FS and GS bases in user mode.",
    )
    .moves("context switches and paranoid entries: bases are written without an MSR write"),
    feature(
        "cpu.feature.pcid",
        bit(1, 0, Register::Ecx, 17),
        "Process-context identifiers in page-table switches.",
    )
    .moves("context switches, and kernel entry under PTI: without it each switch empties the TLB"),
    feature(
        "cpu.feature.invpcid",
        bit(7, 0, Register::Ebx, 10),
        "Invalidating TLB entries of a chosen context.",
    ),
    feature("cpu.feature.smep", bit(7, 0, Register::Ebx, 7), "The kernel cannot execute user pages."),
    feature(
        "cpu.feature.smap",
        bit(7, 0, Register::Ebx, 20),
        "The kernel cannot touch user pages unless it says so.",
    )
    .moves("kernel entry: STAC and CLAC around each copy from or to user memory, CLAC on each entry"),
    feature(
        "cpu.feature.umip",
        bit(7, 0, Register::Ecx, 2),
        "User mode cannot read descriptor-table registers.",
    )
    .moves("SGDT, SIDT, SLDT, STR and SMSW: each faults and is emulated or killed"),
    feature(
        "cpu.feature.rdtscp",
        bit(0x8000_0001, 0, Register::Edx, 27),
        "Reading the time-stamp counter together with the processor's number.",
    )
    .moves("clocks in the vDSO: without it the counter is read behind a fence"),
    feature("cpu.feature.rdpid", bit(7, 0, Register::Ecx, 22), "Reading the processor's number alone.")
        .moves("getcpu in the vDSO: without it the number is read out of a segment limit"),
    feature(
        "cpu.feature.invariant_tsc",
        bit(0x8000_0007, 0, Register::Edx, 8),
        "The time-stamp counter ticks at one rate in all states.",
    )
    .moves("clocks: without it the kernel may read time from a slow device"),
    feature("cpu.feature.la57", bit(7, 0, Register::Ecx, 16), "Page tables of five levels.")
        .moves("page faults and TLB misses: one level more to walk where the kernel uses it"),
    feature(
        "cpu.feature.pge",
        bit(1, 0, Register::Edx, 13),
        "Pages that stay in the TLB when page tables are switched.",
    ),
    feature("cpu.feature.sep", bit(1, 0, Register::Edx, 11), "SYSENTER and SYSEXIT.")
        .moves("32-bit system calls on Intel: without it they enter by interrupt"),
    feature("cpu.feature.syscall", bit(0x8000_0001, 0, Register::Edx, 11), "SYSCALL and SYSRET."),
    feature("cpu.feature.erms", bit(7, 0, Register::Ebx, 9), "Fast copying of strings by REP MOVSB.")
        .moves("copies to and from user memory"),
    feature("cpu.feature.fsrm", bit(7, 0, Register::Edx, 4), "REP MOVSB that is fast for short strings too.")
        .moves("copies to and from user memory, of short pieces"),
    feature(
        "cpu.feature.invlpgb",
        bit(0x8000_0008, 0, Register::Ebx, 3),
        "Invalidating the TLBs of other processors without interrupting them.",
    )
    .moves("munmap and mprotect of several threads: other processors need not be interrupted"),
    feature(
        "cpu.feature.waitpkg",
        bit(7, 0, Register::Ecx, 5),
        "Waiting for a write to memory in user mode.",
    ),
    feature("cpu.feature.monitor", bit(1, 0, Register::Ecx, 3), "MONITOR and MWAIT.")
        .moves("waking another processor: without it an idle one halts and takes an interrupt to wake"),
    feature(
        "cpu.feature.x2apic",
        bit(1, 0, Register::Ecx, 21),
        "Interrupt controllers that are reached by MSR.",
    )
    .moves(
        "interrupts between processors: older ones are reached through memory, which is an exit in a guest",
    ),
    feature(
        "cpu.feature.tsc_deadline_timer",
        bit(1, 0, Register::Ecx, 24),
        "Timers that are set by one MSR.",
    )
    .moves("timers: setting one is one write"),
    feature("cpu.feature.pdpe1gb", bit(0x8000_0001, 0, Register::Edx, 26), "Pages of 1 GiB."),
    feature("cpu.feature.rtm", bit(7, 0, Register::Ebx, 11), "Transactions on memory."),
    feature("cpu.feature.pku", bit(7, 0, Register::Ecx, 3), "Protection keys for user pages."),
    feature("cpu.feature.user_shstk", bit(7, 0, Register::Ecx, 7), "Shadow stacks.")
        .moves("calls, returns and signals of processes that use them"),
    feature("cpu.feature.ibt", bit(7, 0, Register::Edx, 20), "Landing marks for indirect branches."),
    feature(
        "cpu.feature.bus_lock_detect",
        bit(7, 0, Register::Ecx, 24),
        "Traps after locks across two lines.",
    )
    .moves("split locks: each may trap"),
    feature(
        "cpu.feature.arch_capabilities",
        bit(7, 0, Register::Edx, 29),
        "An MSR that lists what the processor is not vulnerable to.",
    )
    .moves("mitigations: what it lists is not mitigated"),
    feature("cpu.feature.md_clear", bit(7, 0, Register::Edx, 10), "VERW clears buffers.")
        .moves("kernel exit: where buffers are cleared it takes this"),
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
        .moves("every price: it depends on the kind of core that it is measured on"),
    feature(
        "cpu.feature.autoibrs",
        bit(0x8000_0021, 0, Register::Eax, 8),
        "Predictors that are restricted on entry without an MSR write.",
    )
    .moves("kernel entry on AMD: nothing has to be written"),
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
