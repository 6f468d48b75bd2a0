use super::{Expected, Experiment, Feature, Group, Origin};

const UNDEFINED: Expected = Expected::Fault { vector: 6, error: 0, ring: 3 };

const CROSSING: Experiment = Experiment {
    number: 0,
    name: "",
    group: Group::Crossings,
    from: Origin::Program,
    about: "",
    operation: "",
    needs: None,
    counted: true,
    value: None,
    intel: Expected::Done,
    amd: Expected::Done,
};
const COMPATIBILITY: Experiment = Experiment { from: Origin::Compatibility, ..CROSSING };
const TRAP: Experiment = Experiment { group: Group::Traps, ..CROSSING };
const PIECE: Experiment =
    Experiment { group: Group::Pieces, from: Origin::Kernel, counted: false, ..CROSSING };
const INTERRUPTS: Experiment = Experiment { group: Group::Interrupts, ..CROSSING };

/// A setup that both vendors' processors refuse in the same way.
const fn wrong(expected: Expected) -> Experiment {
    Experiment { group: Group::Wrong, counted: false, intel: expected, amd: expected, ..CROSSING }
}

const fn fault(vector: u8, error: u32, ring: u8) -> Expected {
    Expected::Fault { vector, error, ring }
}

/// #GP in ring 3.
const fn protection(error: u32) -> Expected {
    fault(13, error, 3)
}

macro_rules! experiments {
    ($($number:literal $name:literal: $common:expr; $about:literal, $operation:literal;)*) => {
        /// All experiments, by number.
        pub const EXPERIMENTS: &[Experiment] = &[
            $(Experiment { number: $number, name: $name, about: $about, operation: $operation, ..$common },)*
        ];
    };
}

experiments! {
    0x00 "int": CROSSING;
        "A software interrupt, the oldest form of a system call.",
        "int 80h; the handler counts; iretq";
    0x01 "int-swapgs": CROSSING;
        "A software interrupt whose handler executes SWAPGS on entry and return.",
        "int 81h; swapgs; the handler counts; swapgs; iretq";
    0x02 "call-gate": CROSSING;
        "A far call through a call gate of the GDT.",
        "lcall; the handler counts; lretq";
    0x03 "syscall": Experiment { needs: Some(Feature::Syscall), ..CROSSING };
        "SYSCALL by itself, with a handler that needs neither stack nor data.",
        "syscall; the handler counts; sysretq";
    0x04 "syscall-swapgs": Experiment { needs: Some(Feature::Syscall), ..CROSSING };
        "SYSCALL with a handler that executes SWAPGS on entry and return.",
        "syscall; swapgs; the handler counts; swapgs; sysretq";
    0x05 "syscall-path": Experiment { needs: Some(Feature::Syscall), ..CROSSING };
        "The complete system call of a small kernel: swapgs, the kernel's stack, a frame with every \
         register, a table of calls, and the return.",
        "xor; syscall; 46 instructions of the path, the call's 3 among them; sysretq";
    0x06 "sysenter": Experiment { needs: Some(Feature::Sysenter), amd: UNDEFINED, ..CROSSING };
        "SYSENTER from 64-bit mode, which AMD processors do not have.",
        "mov; lea; sysenter; the handler counts; sti; sysexitq";
    0x07 "compat-int": COMPATIBILITY;
        "A software interrupt from a program of 32 bits.",
        "int 80h; the handler counts; iretq";
    0x08 "compat-syscall": Experiment { needs: Some(Feature::Syscall), intel: UNDEFINED, ..COMPATIBILITY };
        "SYSCALL from a program of 32 bits, which Intel processors do not have.",
        "syscall; the handler counts; sysretl";
    0x09 "compat-sysenter": Experiment { needs: Some(Feature::Sysenter), amd: UNDEFINED, ..COMPATIBILITY };
        "SYSENTER from a program of 32 bits, which AMD processors do not have in long mode.",
        "mov; mov; sysenter; the handler counts; sti; sysexitl";
    0x0a "ud-lock-mov": Experiment { value: Some(27), ..TRAP };
        "An undefined instruction (f0 89 c8, lock mov); the handler of #UD computes a power for it.",
        "mov; mov; lock mov; the handler computes 3 to the power of 3 and counts; iretq";
    0x0b "ud1": Experiment { value: Some(27), ..TRAP };
        "The same with an instruction that stays undefined (0f b9 c8, ud1).",
        "mov; mov; ud1; the handler computes 3 to the power of 3 and counts; iretq";
    0x0c "ud-lock-mov-ring0": Experiment { from: Origin::Kernel, value: Some(27), ..TRAP };
        "The first, executed in ring 0: a trap that changes no ring.",
        "mov; mov; lock mov; the handler computes 3 to the power of 3 and counts; iretq";
    0x0d "ud1-ring0": Experiment { from: Origin::Kernel, value: Some(27), ..TRAP };
        "The second, executed in ring 0.",
        "mov; mov; ud1; the handler computes 3 to the power of 3 and counts; iretq";
    0x0e "imul": Experiment { counted: false, value: Some(27), ..TRAP };
        "The same number by a multiplication, which does not trap: the baseline of the four.",
        "mov; mov; imul";
    0x0f "page-fault": Experiment { value: Some(0x80_0000), ..TRAP };
        "A load from a page that is not present; the handler returns the address as the value and skips it.",
        "mov; the handler reads CR2, skips, counts, drops the error code; iretq";
    0x10 "general-protection": TRAP;
        "HLT in ring 3, which the handler skips.",
        "hlt; the handler skips, counts, drops the error code; iretq";
    0x11 "breakpoint": TRAP;
        "INT3.",
        "int3; the handler counts; iretq";
    0x12 "swapgs": PIECE;
        "The exchange of the two GS bases.",
        "swapgs";
    0x13 "cr3": PIECE;
        "A switch to page tables with the same mappings; the TLB entries of the old ones are lost.",
        "xchg; mov to cr3";
    0x14 "cr3-pcid": Experiment { needs: Some(Feature::Pcid), ..PIECE };
        "The same between two process-context identifiers, whose TLB entries stay.",
        "xchg; mov to cr3, with bit 63";
    0x15 "spec-ctrl": Experiment { needs: Some(Feature::SpecCtrl), ..PIECE };
        "A write to SPEC_CTRL, of the value that it has.",
        "wrmsr";
    0x16 "verw": PIECE;
        "VERW of a data segment, which on processors with MD_CLEAR empties their buffers as well.",
        "verw";
    0x17 "lfence": PIECE;
        "LFENCE, as kernels place it where a branch must not be speculated past.",
        "lfence";
    0x18 "iretq": PIECE;
        "IRETQ from ring 0 to ring 0, with the frame that it takes.",
        "mov; lea; push; push; pushfq; push; push; iretq";
    0x19 "cli-sti": PIECE;
        "Interrupts off and on.",
        "cli; sti";
    0x1a "frame": PIECE;
        "Every register but the stack pointer onto the stack, and back.",
        "15 times push; 15 times pop";
    0x1b "tlb-flush": PIECE;
        "A flush of the whole TLB, global pages included, by clearing and setting CR4.PGE.",
        "mov to cr4; mov to cr4";
    0x1c "invlpg": PIECE;
        "A flush of one page's TLB entry.",
        "invlpg";
    0x1d "tas-cli": Experiment { value: Some(1), ..INTERRUPTS };
        "A test-and-set in ring 3, atomic by disabled interrupts, which IOPL 3 allows; an operation counts \
         when it was free.",
        "cli; mov; mov; sti; xor; add; mov";
    0x1e "iopl-halt": Experiment { value: Some(0x3046), ..INTERRUPTS };
        "A program in ring 3 with IOPL 3 that keeps the processor for 64 pauses with interrupts off; an \
         operation counts when RFLAGS shows so.",
        "cli; mov; 64 times pause, dec, jnz; pushfq; sti; pop; mov; shr; not; and; add";
    0x40 "wrong-gdt-order": Experiment { needs: Some(Feature::Syscall), ..wrong(fault(13, 0x28, 0)) };
        "User code and user data are swapped in the GDT: SYSRET loads what STAR's sums say and the program \
         runs on, until an interrupt returns to it.",
        "syscall; sysretq; int 80h; iretq";
    0x41 "wrong-gate-dpl": wrong(protection(0x82 * 8 + 2));
        "An interrupt gate that ring 3 may not call: the error code is the gate's offset in the IDT.",
        "int 82h";
    0x42 "wrong-gate-data": wrong(protection(0x10));
        "An interrupt gate that leads to a data segment.",
        "int 82h";
    0x43 "wrong-gate-null": wrong(protection(0));
        "An interrupt gate that leads to no segment.",
        "int 82h";
    0x44 "wrong-gate-absent": wrong(fault(11, 0x82 * 8 + 2, 3));
        "An interrupt gate that is not present.",
        "int 82h";
    0x45 "wrong-segment-absent": wrong(fault(11, 0x38, 3));
        "An interrupt gate to a code segment that is not present.",
        "int 82h";
    // APM 3, SYSRET: the address is not checked, and the fetch from it faults. SDM 2B, SYSRET: #GP(0) before the ring changes.
    0x46 "wrong-return": Experiment { needs: Some(Feature::Syscall), amd: protection(0), ..wrong(fault(13, 0, 0)) };
        "SYSRETQ to an address that is not canonical: Intel processors fault in ring 0, on the program's \
         stack, AMD processors in ring 3.",
        "syscall; sysretq";
    0x47 "wrong-sysenter-cs": Experiment { needs: Some(Feature::Sysenter), amd: UNDEFINED, ..wrong(protection(0)) };
        "SYSENTER while SYSENTER_CS is 0.",
        "mov; lea; sysenter";
    0x48 "wrong-tss-limit": wrong(fault(10, 0x40, 3));
        "An interrupt gate that names stack 7 of a TSS that ends before it.",
        "int 82h";
    0x49 "wrong-call-dpl": wrong(protection(0x50));
        "A call gate that ring 3 may not use.",
        "lcall";
    0x4a "wrong-iret": wrong(fault(13, 0, 0));
        "IRETQ to an address that is not canonical.",
        "int 82h; iretq";
    0x4b "wrong-read": wrong(fault(14, 5, 3));
        "A program that reads the kernel's memory: present, and not for ring 3.",
        "mov";
    0x4c "wrong-port": wrong(protection(0));
        "A program that writes to a port, with I/O privilege level 0 and a TSS without a map of ports.",
        "out";
    0x4d "wrong-user-page": wrong(fault(14, 5, 3));
        "A root of page tables whose entry is not for ring 3: the program's own page is not either, \
         regardless of the entries below.",
        "the fetch of the first instruction";
    0x4e "wrong-gdt-limit": wrong(fault(13, 0x28, 0));
        "A GDT whose limit ends before the segments of 64-bit programs.",
        "iretq";
    0x4f "wrong-idt-limit": wrong(protection(0x82 * 8 + 2));
        "An IDT whose limit ends before the vector that the program calls.",
        "int 82h";
    0x50 "wrong-ltr": wrong(fault(13, 0x40, 0));
        "LTR of a TSS that it has marked as busy before.",
        "ltr";
    0x51 "wrong-rsp0": wrong(fault(14, 2, 3));
        "A TSS whose stack for ring 0 is in a page that is not present.",
        "int 82h";
    0x52 "wrong-ist": wrong(fault(14, 2, 3));
        "An interrupt gate that takes stack 2 of a TSS in which that stack is 0.",
        "int 82h";
    0x53 "wrong-kernel-gs": Experiment { needs: Some(Feature::Syscall), ..wrong(fault(14, 2, 0)) };
        "KERNEL_GS_BASE leads to a page that is not present: after SWAPGS the handler of SYSCALL can \
         save no stack pointer there.",
        "syscall; swapgs; mov";
    0x54 "wrong-sce": Experiment { needs: Some(Feature::Syscall), ..wrong(fault(6, 0, 3)) };
        "SYSCALL while EFER.SCE is clear.",
        "syscall";
    0x55 "wrong-lstar": Experiment { needs: Some(Feature::Syscall), ..wrong(fault(14, 0, 0)) };
        "LSTAR leads to a page that is not present: SYSCALL does not look, and the fetch faults in ring \
         0, on the program's stack.",
        "syscall; the fetch after it";
    0x56 "wrong-fmask": Experiment { needs: Some(Feature::Syscall), ..wrong(fault(1, 0, 0)) };
        "FMASK is 0: a program that steps itself through SYSCALL steps into the kernel, on its own stack.",
        "pushfq; or; popfq; syscall";
    0x57 "wrong-sysenter-eip": Experiment { needs: Some(Feature::Sysenter), amd: UNDEFINED, ..wrong(fault(14, 0, 0)) };
        "SYSENTER_EIP leads to a page that is not present.",
        "mov; lea; sysenter; the fetch after it";
    0x58 "wrong-sysenter-esp": Experiment { needs: Some(Feature::Sysenter), amd: UNDEFINED, ..wrong(fault(14, 2, 0)) };
        "SYSENTER_ESP leads to a page that is not present: the handler's first push faults.",
        "mov; lea; sysenter; push";
}
