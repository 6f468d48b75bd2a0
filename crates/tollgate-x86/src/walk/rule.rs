//! The conditions that the processor looks at, with the values that it compares. How they read is in `say`.

use crate::{Msr, Vendor, Width};

use super::number::Number;
use super::registers::Mode;

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

/// A condition of a crossing, with the values that are compared: levels, limits and selectors by the names of the manuals.
#[expect(missing_docs, reason = "the sentence of a rule says what its values are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The mode has the instruction, on this vendor's processors.
    Exists(&'static str, Mode, Vendor),
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
    /// The entry, by its S bit and type, is a gate that the mode has, and of the kind that is called for.
    GateKind { s: bool, kind: u8, width: Width },
    /// The bits of the upper half that must be clear are.
    WellFormed,
    /// The gate is open to the level, and where a call names it to that of the selector.
    Open { dpl: u8, cpl: u8, rpl: Option<u8> },
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
    NotOutward { dpl: u8, cpl: u8 },
    /// A return does not lead to a more privileged level.
    NotInward { rpl: u8, cpl: u8 },
    /// Non-conforming code is at the level that it is to run at; of conforming code its DPL may be lower.
    CodeLevel { dpl: u8, level: u8, conforming: bool },
    /// The selector asks for no more than the level allows.
    Requested { rpl: u8, cpl: u8 },
    /// The segment is present.
    Present(Role),
    /// The descriptor is data that can be written.
    Writable,
    /// The stack's selector and descriptor have the level.
    StackLevel { rpl: u8, dpl: u8, level: u8 },
    /// A null stack selector is allowed: in 64-bit mode at levels 0 to 2, with that level in it.
    NullStack,
    /// The limit of the TSS has the last byte of the field.
    TaskLimit { last: u16, limit: u32 },
    /// There is room on the stack for so many bytes below the pointer, or where they are read, above it.
    Room { bytes: u16, pointer: Number },
    /// The stack's addresses are canonical.
    CanonicalStack(Number),
    /// The target is within the code segment.
    InSegment { offset: Number, limit: u32 },
    /// The target is canonical.
    CanonicalTarget(Number),
    /// The address in the register is canonical.
    CanonicalMsr(Msr, u64),
    /// NT is clear, in long mode.
    NotNested,
    /// The descriptor is a TSS of the kind and state that is called for.
    IsTask { kind: u8, busy: bool },
    /// The selector points into the GDT.
    InGdt,
}
