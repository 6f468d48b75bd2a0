//! The steps of a walk, as values. `say` puts them into words.

use crate::{Descriptor, GateKind, Msr, Rflags, Selector, Table, Vendor, Width};

use super::number::Number;
use super::outcome::Unknown;
use super::registers::{Directory, Mode, Register, SegmentRegister};
use super::rule::{Role, Rule};
use super::{Crossing, Size};

/// One action of the processor with its values; it displays as a sentence.
#[expect(missing_docs, reason = "the sentence of a step says what its values are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The crossing, and the state of the machine. The width is known even if the mode is not.
    Begin { crossing: Crossing, mode: Option<Mode>, width: Width, vendor: Vendor, cpl: Option<u8> },
    /// CR4.CET is set, and its steps are not modelled.
    WithoutCet,
    /// An entry of a table is looked up. Entries are `scale` bytes apart; `within` says whether the whole entry lies within the
    /// limit, if known.
    Entry {
        directory: Directory,
        index: u16,
        scale: u8,
        base: Number,
        address: Number,
        limit: Option<u32>,
        within: Option<bool>,
    },
    /// The gate: the width of its stack slots, its target, its stack in the interrupt stack table or 0, and the number of
    /// parameters that it copies.
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
    /// The descriptor of a selector, and the register that it is read for.
    Segment { role: Role, selector: Selector, descriptor: Descriptor },
    /// A condition is checked. If it does not hold, a fault follows.
    Check { rule: Rule, holds: bool },
    /// A condition cannot be checked because a value is unknown, and is assumed to hold. Its words follow "whether".
    Unchecked { whether: &'static str, missing: Unknown },
    /// The level is compared with that of the new code segment.
    Level { from: u8, dpl: u8, conforming: bool },
    /// The stack of the new level or of the interrupt stack table is read from the task-state segment. The step has the
    /// addresses that are read and the selector of the TSS. Long mode has no stack segment.
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
    /// A segment register is loaded, and its hidden part from its descriptor.
    LoadSegment { register: SegmentRegister, selector: Selector, origin: Origin },
    /// A segment register is loaded and its hidden part set to fixed values, without reading a descriptor.
    Fixed { register: SegmentRegister, selector: Selector, descriptor: Descriptor, origin: Origin },
    /// The selector in a segment register is loaded; the hidden part stays.
    Kept { register: SegmentRegister, selector: Selector, origin: Origin },
    /// SS becomes a null selector whose RPL is the new level.
    NullStack { selector: Selector },
    /// A data segment register is nulled because its segment's DPL is closed to the new level.
    Cleared { register: SegmentRegister, selector: Selector, dpl: u8, cpl: u8 },
    /// The accessed bit of a descriptor is set.
    Accessed { table: Table, index: u16 },
    /// The flags change.
    Flags { before: Number, after: Number, by: FlagsBy },
    /// `bytes` bytes of parameters are released, which moves the stack pointer to `to`.
    Release { bytes: u16, to: Number },
    /// A task switch begins: the registers are saved in the current TSS. It stays busy if the new task will return to it.
    TaskSave { tr: Option<Selector>, base: Number, stays_busy: bool },
    /// The registers are loaded from another TSS. If the task nests, its link is set to the old TSS, and NT is set in the
    /// flags.
    TaskLoad { selector: Selector, base: Number, nests: bool },
}

/// A value that is pushed, read from the stack, or loaded.
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
    /// Parameter of a call, by its index on the old stack, from 0.
    Parameter(u8),
}

/// The source of a loaded value.
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
    /// A field of a model-specific register, and the number added to it.
    Field(Msr, &'static str, u16),
}

/// Why the flags change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlagsBy {
    /// A gate clears these.
    Gate(GateKind, Rflags),
    /// SYSCALL in long mode clears these, from IA32_FMASK, and RF.
    Mask(Option<Rflags>),
    /// The instruction clears these.
    Cleared(Rflags),
    /// The instruction sets these.
    Set(Rflags),
    /// IRET loads these, and keeps the others.
    Popped(Rflags),
    /// SYSRET loads those in R11 except RF, VM and reserved bits.
    R11,
}
