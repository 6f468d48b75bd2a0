//! The conditions that the processor looks at, with the values that it compares. How they read is in `say`.

use crate::{Vendor, Width};

use super::machine::Mode;
use super::number::Number;

/// The purpose of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The new code segment.
    Cs,
    /// The new stack segment.
    Ss,
    /// The operand of a far call or jump, before it is known what it is.
    Target,
    /// The TSS of another task.
    Task,
}

/// A condition of a crossing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The mode has the instruction, on this vendor's processors.
    Exists(&'static str, Option<Mode>, Vendor),
    /// EFER.SCE is set.
    SyscallEnabled,
    /// FRED leaves the instruction.
    WithoutFred(&'static str),
    /// FRED allows the return: the level stays, and ring 0 stays in 64-bit mode.
    AllowedByFred,
    /// The level is 0.
    Ring0(u8),
    /// IA32_SYSENTER_CS is not null.
    SysenterCs(u64),
    /// The entry is a gate that the mode has, and of the kind that is called for.
    GateKind {
        /// Its S bit.
        s: bool,
        /// Its type.
        kind: u8,
        /// The width of the table.
        width: Width,
    },
    /// The bits of the upper half that must be clear are.
    WellFormed,
    /// The gate is open to the level, and to the selector's.
    Open {
        /// The privilege level of the gate.
        dpl: u8,
        /// The current one.
        cpl: u8,
        /// That of the selector, for a call gate.
        rpl: Option<u8>,
    },
    /// The gate is present.
    GatePresent,
    /// The selector is not null.
    NotNull(Role),
    /// The descriptor is code.
    IsCode,
    /// The code is 64-bit code: L set, D clear.
    Is64Bit,
    /// L and D are not both set.
    NotLAndD,
    /// The code is not less privileged than the code that enters.
    NotOutward {
        /// Of the code segment.
        dpl: u8,
        /// The current level.
        cpl: u8,
    },
    /// A return does not lead to a more privileged level.
    NotInward {
        /// Of the return selector.
        rpl: u8,
        /// The current level.
        cpl: u8,
    },
    /// Non-conforming code is at the level that it is to run at; of conforming code its DPL may be lower.
    CodeLevel {
        /// Of the code segment.
        dpl: u8,
        /// At which it is to run.
        level: u8,
        /// Whether it is conforming.
        conforming: bool,
    },
    /// The selector asks for no more than the level allows.
    Requested {
        /// Of the selector.
        rpl: u8,
        /// The current level.
        cpl: u8,
    },
    /// The segment is present.
    Present(Role),
    /// The descriptor is data that can be written.
    Writable,
    /// The stack's selector and descriptor have the level.
    StackLevel {
        /// Of the selector.
        rpl: u8,
        /// Of the descriptor.
        dpl: u8,
        /// That of the code.
        level: u8,
    },
    /// A null stack selector is allowed: in 64-bit mode at levels 0 to 2, with that level in it.
    NullStack,
    /// The TSS has the field.
    TaskLimit {
        /// The offset of the field's last byte.
        last: u16,
        /// The limit of the TSS.
        limit: u32,
    },
    /// There is room on the stack.
    Room {
        /// For so many bytes.
        bytes: u16,
        /// Below, or where read above, this offset.
        pointer: Number,
    },
    /// The stack's addresses are canonical.
    CanonicalStack(Number),
    /// The target is within the code segment.
    InSegment {
        /// The target.
        offset: Number,
        /// The limit of the segment.
        limit: u32,
    },
    /// The target is canonical.
    CanonicalTarget(Number),
    /// NT is clear, in long mode.
    NotNested,
    /// The descriptor is a TSS of the kind and state that is called for.
    IsTask {
        /// Its type.
        kind: u8,
        /// Whether it has to be busy.
        busy: bool,
    },
    /// The selector points into the GDT.
    InGdt,
}
