use crate::{Msr, Selector};

use super::registers::{Directory, Register, SegmentRegister};

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The crossing was made.
    Done,
    /// The processor raises an exception instead.
    Fault(Fault),
    /// The rest of the crossing is not modelled.
    NotModelled(NotModelled),
    /// The walk needs a value that is unknown.
    Unknown(Unknown),
    /// No machine can be in this state: the register holds a value that WRMSR refuses.
    Impossible(Msr),
}

/// The exception that a crossing raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The exception.
    pub exception: Exception,
    /// Error code, if the exception has one.
    pub code: Option<u32>,
    /// Linear address of a page fault, for CR2.
    pub address: Option<u64>,
    /// Privilege level at which it is raised.
    pub level: Option<u8>,
    /// Whether the crossing was made first, so that the registers have their new values. Otherwise they are unchanged.
    pub crossed: bool,
}

impl Fault {
    /// Returns the page fault for an access at a level.
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

/// How an exception combines with a second one. SDM 3A, table "Interrupt and exception classes".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Never leads to a double fault.
    Benign,
    /// Two contributory exceptions make a double fault.
    Contributory,
    /// A page fault, or a virtualization exception.
    PageFault,
    /// A double fault.
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

    /// Returns its severity.
    pub const fn severity(self) -> Severity {
        match self.0 {
            0 | 10..=13 | 21 => Severity::Contributory,
            14 | 20 => Severity::PageFault,
            8 => Severity::DoubleFault,
            _ => Severity::Benign,
        }
    }

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

    /// Returns its name in the manuals, lower case; `None` if the vector is reserved or free.
    pub fn name(self) -> Option<&'static str> {
        self.words().map(|words| words.1)
    }

    /// Returns its mnemonic in the manuals, without `#`; `None` if the vector is reserved or free.
    pub fn mnemonic(self) -> Option<&'static str> {
        self.words().map(|words| words.0)
    }
}

/// A part of the architecture that the walk does not model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotModelled {
    /// CR0.PE is clear.
    RealMode,
    /// EFLAGS.VM is set, or IRET would set it.
    Virtual8086,
    /// CR4.FRED is set: events, SYSCALL and SYSENTER do not use the IDT, STAR and SYSENTER_CS.
    Fred,
    /// The exchange of registers with another task. The checks before it were made.
    TaskSwitch,
}

/// A value that the walk needs and does not know.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// A register.
    Register(Register),
    /// The selector in a segment register.
    Selector(SegmentRegister),
    /// The hidden part of a segment register.
    Hidden(SegmentRegister),
    /// The limit of a table.
    Limit(Directory),
    /// The descriptor of a selector.
    Descriptor(Selector),
    /// An entry of the interrupt descriptor table.
    Gate(u8),
    /// `size` bytes at an offset of the current task-state segment.
    TaskState { offset: u16, size: u8 },
    /// `size` bytes of a stack at a linear address.
    Stack { address: u64, size: u8 },
    /// The current privilege level.
    Level,
    /// Whether the mode is 64-bit mode or compatibility mode.
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
