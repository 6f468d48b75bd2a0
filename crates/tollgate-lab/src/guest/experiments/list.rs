//! The list of experiments.

use super::{
    Expected, Experiment, Feature, Group, Origin, UNDEFINED, crossing, experiment, piece, protection, wrong,
};

/// All experiments, by number.
pub const EXPERIMENTS: &[Experiment] = &[
    crossing(
        0x00,
        "int",
        "A software interrupt, the oldest form of a system call.",
        "int 80h; the handler counts; iretq",
    ),
    crossing(
        0x01,
        "int-swapgs",
        "A software interrupt whose handler executes SWAPGS on entry and return.",
        "int 81h; swapgs; the handler counts; swapgs; iretq",
    ),
    crossing(
        0x02,
        "call-gate",
        "A far call through a call gate of the GDT.",
        "lcall; the handler counts; lretq",
    ),
    Experiment {
        needs: Some(Feature::Syscall),
        ..crossing(
            0x03,
            "syscall",
            "SYSCALL by itself, with a handler that needs neither stack nor data.",
            "syscall; the handler counts; sysretq",
        )
    },
    Experiment {
        needs: Some(Feature::Syscall),
        ..crossing(
            0x04,
            "syscall-swapgs",
            "SYSCALL with a handler that executes SWAPGS on entry and return.",
            "syscall; swapgs; the handler counts; swapgs; sysretq",
        )
    },
    Experiment {
        needs: Some(Feature::Syscall),
        ..crossing(
            0x05,
            "syscall-path",
            "The complete system call of a small kernel: swapgs, the kernel's stack, a frame with every \
             register, a table of calls, and the return.",
            "xor; syscall; 46 instructions of the path, the call's 3 among them; sysretq",
        )
    },
    Experiment {
        needs: Some(Feature::Sysenter),
        amd: UNDEFINED,
        ..crossing(
            0x06,
            "sysenter",
            "SYSENTER from 64-bit mode, which AMD processors do not have.",
            "mov; lea; sysenter; the handler counts; sti; sysexitq",
        )
    },
    Experiment {
        from: Origin::Compatibility,
        ..crossing(
            0x07,
            "compat-int",
            "A software interrupt from a program of 32 bits.",
            "int 80h; the handler counts; iretq",
        )
    },
    Experiment {
        from: Origin::Compatibility,
        needs: Some(Feature::Syscall),
        intel: UNDEFINED,
        ..crossing(
            0x08,
            "compat-syscall",
            "SYSCALL from a program of 32 bits, which Intel processors do not have.",
            "syscall; the handler counts; sysretl",
        )
    },
    Experiment {
        from: Origin::Compatibility,
        needs: Some(Feature::Sysenter),
        amd: UNDEFINED,
        ..crossing(
            0x09,
            "compat-sysenter",
            "SYSENTER from a program of 32 bits, which AMD processors do not have in long mode.",
            "mov; mov; sysenter; the handler counts; sti; sysexitl",
        )
    },
    Experiment {
        value: Some(27),
        ..experiment(
            0x0a,
            "ud-lock-mov",
            Group::Traps,
            "An undefined instruction (f0 89 c8, lock mov); the handler of #UD computes a power for it.",
            "mov; mov; lock mov; the handler computes 3 to the power of 3 and counts; iretq",
        )
    },
    Experiment {
        value: Some(27),
        ..experiment(
            0x0b,
            "ud1",
            Group::Traps,
            "The same with an instruction that stays undefined (0f b9 c8, ud1).",
            "mov; mov; ud1; the handler computes 3 to the power of 3 and counts; iretq",
        )
    },
    Experiment {
        from: Origin::Kernel,
        value: Some(27),
        ..experiment(
            0x0c,
            "ud-lock-mov-ring0",
            Group::Traps,
            "The first, executed in ring 0: a trap that changes no ring.",
            "mov; mov; lock mov; the handler computes 3 to the power of 3 and counts; iretq",
        )
    },
    Experiment {
        from: Origin::Kernel,
        value: Some(27),
        ..experiment(
            0x0d,
            "ud1-ring0",
            Group::Traps,
            "The second, executed in ring 0.",
            "mov; mov; ud1; the handler computes 3 to the power of 3 and counts; iretq",
        )
    },
    Experiment {
        counted: false,
        value: Some(27),
        ..experiment(
            0x0e,
            "imul",
            Group::Traps,
            "The same number by a multiplication, which does not trap: the baseline of the four.",
            "mov; mov; imul",
        )
    },
    Experiment {
        value: Some(0x80_0000),
        ..experiment(
            0x0f,
            "page-fault",
            Group::Traps,
            "A load from a page that is not present; the handler returns the address as the value and skips it.",
            "mov; the handler reads CR2, skips, counts, drops the error code; iretq",
        )
    },
    experiment(
        0x10,
        "general-protection",
        Group::Traps,
        "HLT in ring 3, which the handler skips.",
        "hlt; the handler skips, counts, drops the error code; iretq",
    ),
    experiment(0x11, "breakpoint", Group::Traps, "INT3.", "int3; the handler counts; iretq"),
    piece(0x12, "swapgs", "The exchange of the two GS bases.", "swapgs"),
    piece(
        0x13,
        "cr3",
        "A switch to page tables with the same mappings; the TLB entries of the old ones are lost.",
        "xchg; mov to cr3",
    ),
    Experiment {
        needs: Some(Feature::Pcid),
        ..piece(
            0x14,
            "cr3-pcid",
            "The same between two process-context identifiers, whose TLB entries stay.",
            "xchg; mov to cr3, with bit 63",
        )
    },
    Experiment {
        needs: Some(Feature::SpecCtrl),
        ..piece(0x15, "spec-ctrl", "A write to SPEC_CTRL, of the value that it has.", "wrmsr")
    },
    piece(
        0x16,
        "verw",
        "VERW of a data segment, which on processors with MD_CLEAR empties their buffers as well.",
        "verw",
    ),
    piece(
        0x17,
        "lfence",
        "LFENCE, as kernels place it where a branch must not be speculated past.",
        "lfence",
    ),
    piece(
        0x18,
        "iretq",
        "IRETQ from ring 0 to ring 0, with the frame that it takes.",
        "mov; lea; push; push; pushfq; push; push; iretq",
    ),
    piece(0x19, "cli-sti", "Interrupts off and on.", "cli; sti"),
    piece(
        0x1a,
        "frame",
        "Every register but the stack pointer onto the stack, and back.",
        "15 times push; 15 times pop",
    ),
    piece(
        0x1b,
        "tlb-flush",
        "A flush of the whole TLB, global pages included, by clearing and setting CR4.PGE.",
        "mov to cr4; mov to cr4",
    ),
    piece(0x1c, "invlpg", "A flush of one page's TLB entry.", "invlpg"),
    Experiment {
        value: Some(1),
        ..experiment(
            0x1d,
            "tas-cli",
            Group::Interrupts,
            "A test-and-set in ring 3, atomic by disabled interrupts, which IOPL 3 allows; an operation \
             counts when it was free.",
            "cli; mov; mov; sti; xor; add; mov",
        )
    },
    Experiment {
        value: Some(0x3046),
        ..experiment(
            0x1e,
            "iopl-halt",
            Group::Interrupts,
            "A program in ring 3 with IOPL 3 that keeps the processor for 64 pauses with interrupts off; an \
             operation counts when RFLAGS shows so.",
            "cli; mov; 64 times pause, dec, jnz; pushfq; sti; pop; mov; shr; not; and; add",
        )
    },
    Experiment {
        needs: Some(Feature::Syscall),
        ..wrong(
            0x40,
            "wrong-gdt-order",
            "User code and user data are swapped in the GDT: SYSRET loads what STAR's sums say and the \
             program runs on, until an \
             interrupt returns to it.",
            "syscall; sysretq; int 80h; iretq",
            Expected::Fault { vector: 13, error: 0x28, ring: 0 },
        )
    },
    wrong(
        0x41,
        "wrong-gate-dpl",
        "An interrupt gate that ring 3 may not call: the error code is the gate's offset in the IDT.",
        "int 82h",
        protection(0x82 * 8 + 2),
    ),
    wrong(
        0x42,
        "wrong-gate-data",
        "An interrupt gate that leads to a data segment.",
        "int 82h",
        protection(0x10),
    ),
    wrong(0x43, "wrong-gate-null", "An interrupt gate that leads to no segment.", "int 82h", protection(0)),
    wrong(
        0x44,
        "wrong-gate-absent",
        "An interrupt gate that is not present.",
        "int 82h",
        Expected::Fault { vector: 11, error: 0x82 * 8 + 2, ring: 3 },
    ),
    wrong(
        0x45,
        "wrong-segment-absent",
        "An interrupt gate to a code segment that is not present.",
        "int 82h",
        Expected::Fault { vector: 11, error: 0x38, ring: 3 },
    ),
    Experiment {
        needs: Some(Feature::Syscall),
        // APM 3, SYSRET: the address is not looked at; the fetch from it faults. SDM 2B, SYSRET: #GP(0) before the ring changes.
        amd: protection(0),
        ..wrong(
            0x46,
            "wrong-return",
            "SYSRETQ to an address that is not canonical: Intel processors fault in ring 0, on the program's stack, AMD processors in ring 3.",
            "syscall; sysretq",
            Expected::Fault { vector: 13, error: 0, ring: 0 },
        )
    },
    Experiment {
        needs: Some(Feature::Sysenter),
        amd: UNDEFINED,
        ..wrong(
            0x47,
            "wrong-sysenter-cs",
            "SYSENTER while SYSENTER_CS is 0.",
            "mov; lea; sysenter",
            protection(0),
        )
    },
    wrong(
        0x48,
        "wrong-tss-limit",
        "An interrupt gate that names stack 7 of a TSS that ends before it.",
        "int 82h",
        Expected::Fault { vector: 10, error: 0x40, ring: 3 },
    ),
    wrong(0x49, "wrong-call-dpl", "A call gate that ring 3 may not use.", "lcall", protection(0x50)),
    wrong(
        0x4a,
        "wrong-iret",
        "IRETQ to an address that is not canonical.",
        "int 82h; iretq",
        Expected::Fault { vector: 13, error: 0, ring: 0 },
    ),
    wrong(
        0x4b,
        "wrong-read",
        "A program that reads the kernel's memory: present, and not for ring 3.",
        "mov",
        Expected::Fault { vector: 14, error: 5, ring: 3 },
    ),
];
