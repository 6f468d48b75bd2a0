//! The steps of a walk, as values. How they read is in `say`.

use crate::{Descriptor, GateKind, Msr, Rflags, Selector, Table, Vendor, Width};

use super::machine::{Directory, Mode, Register, SegmentRegister};
use super::number::Number;
use super::outcome::Unknown;
use super::rule::{Role, Rule};
use super::{Crossing, Size};

/// One thing that the processor does, with the values that it does it with. It reads as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// The crossing, and the state of the machine.
    Begin {
        /// Which way.
        crossing: Crossing,
        /// The mode.
        mode: Option<Mode>,
        /// None where the mode is not known.
        width: Width,
        /// The processor's vendor.
        vendor: Vendor,
        /// The privilege level.
        cpl: Option<u8>,
    },
    /// CR4.CET is set, and its steps are left out.
    WithoutCet,
    /// An entry of a table is looked up.
    Entry {
        /// The table.
        directory: Directory,
        /// The number of the entry; of the IDT the vector.
        index: u16,
        /// How many bytes apart the entries are.
        scale: u8,
        /// Where the table begins.
        base: Number,
        /// Where the entry begins.
        address: Number,
        /// The limit of the table.
        limit: Option<u32>,
        /// Whether all of the entry lies within the limit, where that is known.
        within: Option<bool>,
    },
    /// The gate.
    Gate {
        /// Its kind.
        kind: GateKind,
        /// How wide its stack slots are.
        slot: Size,
        /// Whether it is present.
        present: bool,
        /// Its privilege level.
        dpl: u8,
        /// Where it leads: the segment, or the TSS.
        selector: Selector,
        /// Where it leads in the segment.
        offset: Number,
        /// The number of its stack in the interrupt stack table, or 0.
        stack: u8,
        /// How many parameters it copies.
        parameters: u8,
    },
    /// The descriptor.
    Segment {
        /// For which register it is read.
        role: Role,
        /// The selector that it was found by.
        selector: Selector,
        /// The descriptor.
        descriptor: Descriptor,
    },
    /// A condition is looked at.
    Check {
        /// The condition.
        rule: Rule,
        /// Whether it holds: otherwise there is a fault.
        holds: bool,
    },
    /// A condition cannot be looked at, and is taken to hold.
    Unchecked {
        /// Which, in words that follow "whether".
        whether: &'static str,
        /// The value that is missing.
        missing: Unknown,
    },
    /// The level is compared with that of the new code.
    Level {
        /// The level before.
        from: u8,
        /// The privilege level of the new code segment.
        dpl: u8,
        /// Whether it is conforming.
        conforming: bool,
    },
    /// The stack of the new level is taken from the task-state segment.
    TaskStack {
        /// The new level.
        ring: u8,
        /// The number in the interrupt stack table, or 0.
        stack: u8,
        /// The stack segment; long mode has none.
        ss: Option<(Selector, Number)>,
        /// The stack pointer.
        pointer: Number,
        /// Where the stack pointer is.
        address: Number,
        /// The selector in the task register.
        tr: Option<Selector>,
    },
    /// The stack pointer is aligned to 16 bytes.
    Align {
        /// Before.
        from: Number,
        /// After.
        to: Number,
    },
    /// A value is pushed.
    Push {
        /// What.
        item: Item,
        /// The value, as wide as its slot.
        value: Number,
        /// The linear address.
        at: Number,
    },
    /// A value is read from the stack.
    Pop {
        /// What.
        item: Item,
        /// The value, as wide as its slot.
        value: Number,
        /// The linear address.
        at: Number,
    },
    /// A register is loaded.
    Load {
        /// Which.
        item: Item,
        /// With what.
        value: Number,
        /// The source.
        origin: Origin,
    },
    /// A segment register is loaded, and its hidden part with what its descriptor says.
    LoadSegment {
        /// Which.
        register: SegmentRegister,
        /// With what.
        selector: Selector,
        /// The source of the selector.
        origin: Origin,
    },
    /// A segment register is loaded and its hidden part set to fixed values: no descriptor is read.
    Fixed {
        /// Which.
        register: SegmentRegister,
        /// With what.
        selector: Selector,
        /// The fixed values.
        descriptor: Descriptor,
        /// The source of the selector.
        origin: Origin,
    },
    /// A segment register's selector is loaded and its hidden part stays.
    Kept {
        /// Which.
        register: SegmentRegister,
        /// With what.
        selector: Selector,
        /// The source of the selector.
        origin: Origin,
    },
    /// SS becomes a null selector whose RPL is the new level.
    NullStack {
        /// The selector.
        selector: Selector,
    },
    /// A data segment register loses its segment, which is closed to the new level.
    Cleared {
        /// Which.
        register: SegmentRegister,
        /// The old selector.
        selector: Selector,
        /// The privilege level of the segment.
        dpl: u8,
        /// The new level.
        cpl: u8,
    },
    /// The accessed bit of a descriptor is set.
    Accessed {
        /// In which table.
        table: Table,
        /// Which entry.
        index: u16,
    },
    /// The flags change.
    Flags {
        /// Before.
        before: Number,
        /// After.
        after: Number,
        /// By what.
        by: FlagsBy,
    },
    /// Parameters are released.
    Release {
        /// How many bytes.
        bytes: u16,
        /// The stack pointer after that.
        to: Number,
    },
    /// A task switch begins: the registers are saved in this TSS.
    TaskSave {
        /// The selector in the task register.
        tr: Option<Selector>,
        /// Where the TSS is.
        base: Number,
        /// Whether it stays busy: it will be returned to.
        stays_busy: bool,
    },
    /// The registers are loaded from another TSS.
    TaskLoad {
        /// Its selector.
        selector: Selector,
        /// Where it is.
        base: Number,
        /// Whether its link is set to the old task, and NT in the new flags.
        nests: bool,
    },
}

/// A value that is pushed, read from the stack or loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Item {
    /// CS.
    Cs,
    /// SS.
    Ss,
    /// RIP, EIP or IP.
    Rip,
    /// RSP, ESP or SP.
    Rsp,
    /// RFLAGS, EFLAGS or FLAGS.
    Rflags,
    /// RCX or ECX.
    Rcx,
    /// R11.
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
    /// SYSCALL in long mode: these, of IA32_FMASK, are cleared.
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
