//! How a walk ends.

use crate::{Msr, Selector};

use super::registers::{Directory, Register, SegmentRegister};

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The crossing was made.
    Done,
    /// The processor raises an exception instead.
    Fault(Fault),
    /// From here on it is not walked.
    NotModelled(NotModelled),
    /// A value is missing without which the walk cannot go on.
    Unknown(Unknown),
    /// The register holds what cannot be written to it, so that there is no such state.
    Impossible(Msr),
}

/// An exception that a crossing ended in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Which.
    pub exception: Exception,
    /// Its error code, where it has one.
    pub code: Option<u32>,
    /// Of a page fault the linear address, for CR2.
    pub address: Option<u64>,
    /// At which level it is raised.
    pub level: Option<u8>,
    /// Whether the crossing had been made before: the registers are the new ones. Otherwise they are as they were.
    pub crossed: bool,
}

impl Fault {
    /// The page fault that an access to an address meets at a level.
    pub const fn of_page(address: u64, code: u32, level: Option<u8>) -> Self {
        let (code, address) = (Some(code), Some(address));
        Self { exception: Exception::PAGE_FAULT, code, address, level, crossed: false }
    }
}

/// An exception, by its vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exception(
    /// The vector.
    pub u8,
);

/// How serious an exception is where another one meets it. SDM 3A, table "Interrupt and exception classes".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// It meets others without harm.
    Benign,
    /// Two of them are a double fault.
    Contributory,
    /// A page fault, or a virtualization exception.
    PageFault,
    /// The double fault itself.
    DoubleFault,
}

impl Exception {
    /// #UD, invalid opcode.
    pub const INVALID_OPCODE: Self = Self(6);
    /// #DF, double fault.
    pub const DOUBLE_FAULT: Self = Self(8);
    /// #TS, invalid TSS.
    pub const INVALID_TSS: Self = Self(10);
    /// #NP, segment not present.
    pub const NOT_PRESENT: Self = Self(11);
    /// #SS, stack fault.
    pub const STACK: Self = Self(12);
    /// #GP, general protection.
    pub const GENERAL_PROTECTION: Self = Self(13);
    /// #PF, page fault.
    pub const PAGE_FAULT: Self = Self(14);

    /// How serious it is.
    pub const fn severity(self) -> Severity {
        match self.0 {
            0 | 10..=13 | 21 => Severity::Contributory,
            14 | 20 => Severity::PageFault,
            8 => Severity::DoubleFault,
            _ => Severity::Benign,
        }
    }

    /// Its mnemonic and its name in the manuals.
    const fn words(self) -> Option<(&'static str, &'static str)> {
        Some(match self.0 {
            0 => ("DE", "divide error"),
            1 => ("DB", "debug exception"),
            2 => ("NMI", "non-maskable interrupt"),
            3 => ("BP", "breakpoint"),
            4 => ("OF", "overflow"),
            5 => ("BR", "bound range exceeded"),
            6 => ("UD", "invalid opcode"),
            7 => ("NM", "device not available"),
            8 => ("DF", "double fault"),
            10 => ("TS", "invalid TSS"),
            11 => ("NP", "segment not present"),
            12 => ("SS", "stack fault"),
            13 => ("GP", "general protection"),
            14 => ("PF", "page fault"),
            16 => ("MF", "x87 error"),
            17 => ("AC", "alignment check"),
            18 => ("MC", "machine check"),
            19 => ("XM", "SIMD floating-point exception"),
            20 => ("VE", "virtualization exception"),
            21 => ("CP", "control protection"),
            _ => return None,
        })
    }

    /// Its name in the manuals, lower case; none where the vector is reserved or free.
    pub fn name(self) -> Option<&'static str> {
        self.words().map(|words| words.1)
    }

    /// Its mnemonic in the manuals, without `#`; none where the vector is reserved or free.
    pub fn mnemonic(self) -> Option<&'static str> {
        self.words().map(|words| words.0)
    }
}

/// The part that is not walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotModelled {
    /// CR0.PE is clear.
    RealMode,
    /// EFLAGS.VM is set, or IRET would set it.
    Virtual8086,
    /// CR4.FRED is set: events, SYSCALL and SYSENTER do not use the IDT, STAR and SYSENTER_CS.
    Fred,
    /// The exchange of the registers with those of another task. The checks before it were made.
    TaskSwitch,
}

/// The value that is missing.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// The value of a register.
    Register(Register),
    /// The selector in a segment register.
    Selector(SegmentRegister),
    /// The hidden part of a segment register.
    Hidden(SegmentRegister),
    /// Where a table ends.
    Limit(Directory),
    /// A descriptor.
    Descriptor(Selector),
    /// An entry of the interrupt descriptor table.
    Gate(u8),
    /// So many bytes of the current task-state segment from an offset on.
    TaskState { offset: u16, size: u8 },
    /// So many bytes of a stack from a linear address on.
    Stack { address: u64, size: u8 },
    /// The privilege level.
    Level,
    /// Whether it is 64-bit mode or compatibility mode.
    Mode,
}

impl From<Msr> for Unknown {
    fn from(msr: Msr) -> Self {
        Self::Register(Register::Msr(msr))
    }
}

impl From<Unknown> for Outcome {
    fn from(unknown: Unknown) -> Self {
        Self::Unknown(unknown)
    }
}
