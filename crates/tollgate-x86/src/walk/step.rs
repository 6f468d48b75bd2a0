//! The steps of a walk, as values. How they read is in `say`.

use crate::{Descriptor, GateKind, Msr, Rflags, Selector, Table, Vendor, Width};

use super::number::Number;
use super::outcome::Unknown;
use super::registers::{Directory, Mode, Register, SegmentRegister};
use super::rule::{Role, Rule};
use super::{Crossing, Size};

/// One thing that the processor does, with the values that it does it with. It reads as a sentence.
#[expect(missing_docs, reason = "the sentence of a step says what its values are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The crossing, and the state of the machine. Its width says what `mode` does not where that is not known.
    Begin { crossing: Crossing, mode: Option<Mode>, width: Width, vendor: Vendor, cpl: Option<u8> },
    /// CR4.CET is set, and its steps are left out.
    WithoutCet,
    /// An entry of a table is looked up: entries are `scale` bytes apart, and `within` says whether all of it lies within
    /// the limit, where that is known.
    Entry {
        directory: Directory,
        index: u16,
        scale: u8,
        base: Number,
        address: Number,
        limit: Option<u32>,
        within: Option<bool>,
    },
    /// The gate: how wide its stack slots are, where it leads, its stack in the interrupt stack table or 0, and how many
    /// parameters it copies.
    Gate {
        kind: GateKind,
        slot: Size,
        present: bool,
        dpl: u8,
        selector: Selector,
        offset: Number,
        stack: u8,
        parameters: u8,
    },
    /// The descriptor that a selector found, and for which register it is read.
    Segment { role: Role, selector: Selector, descriptor: Descriptor },
    /// A condition is looked at. Where it does not hold there is a fault.
    Check { rule: Rule, holds: bool },
    /// A condition cannot be looked at, for a value is missing, and is taken to hold. Its words follow "whether".
    Unchecked { whether: &'static str, missing: Unknown },
    /// The level is compared with that of the new code segment.
    Level { from: u8, dpl: u8, conforming: bool },
    /// The stack of the new level, or of the interrupt stack table, is taken from the task-state segment: from which
    /// addresses, and the selector of the TSS. Long mode has no stack segment.
    TaskStack {
        ring: u8,
        stack: u8,
        ss: Option<(Selector, Number)>,
        pointer: Number,
        address: Number,
        tr: Option<Selector>,
    },
    /// The stack pointer is aligned to 16 bytes.
    Align { from: Number, to: Number },
    /// A value as wide as its slot is pushed at a linear address.
    Push { item: Item, value: Number, at: Number },
    /// A value as wide as its slot is read from the stack at a linear address.
    Pop { item: Item, value: Number, at: Number },
    /// A register is loaded.
    Load { item: Item, value: Number, origin: Origin },
    /// A segment register is loaded, and its hidden part with what its descriptor says.
    LoadSegment { register: SegmentRegister, selector: Selector, origin: Origin },
    /// A segment register is loaded and its hidden part set to fixed values: no descriptor is read.
    Fixed { register: SegmentRegister, selector: Selector, descriptor: Descriptor, origin: Origin },
    /// A segment register's selector is loaded and its hidden part stays.
    Kept { register: SegmentRegister, selector: Selector, origin: Origin },
    /// SS becomes a null selector whose RPL is the new level.
    NullStack { selector: Selector },
    /// A data segment register loses its segment, whose DPL closes it to the new level.
    Cleared { register: SegmentRegister, selector: Selector, dpl: u8, cpl: u8 },
    /// The accessed bit of the descriptor in an entry is set.
    Accessed { table: Table, index: u16 },
    /// The flags change.
    Flags { before: Number, after: Number, by: FlagsBy },
    /// So many bytes of parameters are released, which leaves the stack pointer there.
    Release { bytes: u16, to: Number },
    /// A task switch begins: the registers are saved in the TSS of the task register. It stays busy where it will be
    /// returned to.
    TaskSave { tr: Option<Selector>, base: Number, stays_busy: bool },
    /// The registers are loaded from another TSS. Where the task nests, its link is set to the old one and NT in the flags.
    TaskLoad { selector: Selector, base: Number, nests: bool },
}

/// A value that is pushed, read from the stack or loaded.
#[expect(missing_docs, reason = "the names of the manuals")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Item {
    Cs,
    Ss,
    Rip,
    Rsp,
    Rflags,
    Rcx,
    R11,
    /// The base of GS.
    GsBase,
    /// IA32_KERNEL_GS_BASE.
    KernelGsBase,
    /// The error code.
    Code,
    /// A parameter of a call, by its index on the old stack, from 0.
    Parameter(u8),
}

/// The source of a value that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The gate.
    Gate,
    /// The operand of the instruction.
    Operand,
    /// The stack that was read.
    Stack,
    /// The stack pointer after the pushes.
    Pushes,
    /// The task-state segment.
    TaskState,
    /// The address of the next instruction.
    Next,
    /// A register.
    Register(Register),
    /// All of a model-specific register.
    Msr(Msr),
    /// A field of a model-specific register, and what is added to it.
    Field(Msr, &'static str, u16),
}

/// The cause of a change of the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlagsBy {
    /// A gate: these are cleared.
    Gate(GateKind, Rflags),
    /// SYSCALL in long mode: these, of IA32_FMASK, are cleared, and RF.
    Mask(Option<Rflags>),
    /// These are cleared by the instruction.
    Cleared(Rflags),
    /// These are set by the instruction.
    Set(Rflags),
    /// IRET loads these, and keeps the others.
    Popped(Rflags),
    /// SYSRET loads those in R11 but for RF, VM and what is reserved.
    R11,
}
