//! The conditions that the processor checks, with the values that it compares. `say` puts them into words.

use crate::{Msr, Vendor, Width};

use super::number::Number;
use super::registers::Mode;

/// The role of a descriptor in a crossing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The new code segment.
    Cs,
    /// The new stack segment.
    Ss,
    /// The operand of a far call or jump, before its type is known.
    Target,
    /// The TSS of another task.
    Task,
}

/// A condition of a crossing, with the compared values: levels, limits and selectors as the manuals name them.
#[expect(missing_docs, reason = "the sentence of a rule says what its values are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// This vendor's processors have the instruction in the mode.
    Exists(&'static str, Mode, Vendor),
    /// EFER.SCE is set.
    SyscallEnabled,
    /// FRED does not remove the instruction.
    WithoutFred(&'static str),
    /// FRED allows the return: it keeps the level, and ring 0 stays in 64-bit mode.
    AllowedByFred,
    /// The current privilege level is 0.
    Ring0(u8),
    /// IA32_SYSENTER_CS is not null.
    SysenterCs(u64),
    /// The entry's S bit and type are those of a gate of the mode and of the required kind.
    GateKind { s: bool, kind: u8, width: Width },
    /// The bits of the upper half that must be 0 are 0.
    WellFormed,
    /// The gate is open to the level, and for a call also to the selector's RPL.
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
    /// The DPL of non-conforming code is the level at which it will run; conforming code may have a lower DPL.
    CodeLevel { dpl: u8, level: u8, conforming: bool },
    /// The selector's RPL is not beyond what the level allows.
    Requested { rpl: u8, cpl: u8 },
    /// The segment is present.
    Present(Role),
    /// The descriptor is writable data.
    Writable,
    /// The stack's selector and descriptor have the level.
    StackLevel { rpl: u8, dpl: u8, level: u8 },
    /// A null stack selector is allowed: in 64-bit mode at levels 0 to 2, with the level as its RPL.
    NullStack,
    /// The limit of the TSS includes the last byte of the field.
    TaskLimit { last: u16, limit: u32 },
    /// The stack has `bytes` bytes below the pointer for a write, or above it for a read.
    Room { bytes: u16, pointer: Number },
    /// The stack's addresses are canonical.
    CanonicalStack(Number),
    /// The target is within the code segment.
    InSegment { offset: Number, limit: u32 },
    /// The target is canonical.
    CanonicalTarget(Number),
    /// The address in the register is canonical.
    CanonicalMsr(Msr, u64),
    /// NT is clear in long mode.
    NotNested,
    /// The descriptor is a TSS of the required kind and state.
    IsTask { kind: u8, busy: bool },
    /// The selector points into the GDT.
    InGdt,
}
