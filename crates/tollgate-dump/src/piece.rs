//! The pieces of a text, before they are joined.

use serde::Serialize;
use tollgate_x86::{AccessRights, Msr, Selector};

use crate::printed::{PrintedDescriptor, PrintedGate};
use crate::{complaint::Complaint, format::Format};

/// The pieces of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dump {
    /// The pieces that were understood, in the order of the text.
    pub pieces: Vec<Piece>,
    /// Lines that say which system, or which processor, the following is from, or that begin another section.
    pub headings: Vec<Heading>,
    /// Lines of prose, and of another tool's prompt: the first between two pieces.
    pub prose: Vec<usize>,
    /// Lines that look like data that went wrong, the first of them.
    pub complaints: Vec<Complaint>,
    /// How many more such lines there are.
    pub more_complaints: usize,
    /// How many lines there are.
    pub lines: Lines,
    /// From which line on nothing was read, since as much was found as is kept.
    pub cut: Option<usize>,
}

/// The lines of a text, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lines {
    /// All that were read.
    pub total: usize,
    /// Those that hold data, or belong to a table that does.
    pub understood: usize,
    /// Those with nothing in them, or a prompt alone.
    pub empty: usize,
    /// All others: commands, prose.
    pub foreign: usize,
}

/// One piece of information in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The line, from 1.
    pub line: usize,
    /// The format that it was read as.
    pub format: Format,
    /// Pieces of one number are one answer of a tool: nothing else stands between their lines.
    pub block: usize,
    /// Its value.
    pub what: What,
}

/// The value of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Memory, in memory order.
    Bytes {
        /// The linear address of the first byte, where the text has it.
        address: Option<u64>,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// GDTR or IDTR, or as much of it as the line says.
    TableRegister {
        /// Which.
        table: TableRegister,
        /// The address of the table.
        base: Option<u64>,
        /// Its last byte.
        limit: Option<u32>,
    },
    /// A segment register, TR or LDTR: its selector, and its hidden part where the tool shows it.
    Segment {
        /// Which.
        register: SegmentRegister,
        /// The visible part.
        selector: Selector,
        /// The hidden part.
        hidden: Option<Hidden>,
    },
    /// Another register.
    Register {
        /// Its name, see [`Register`].
        register: Register,
        /// Its value.
        value: u64,
    },
    /// What is at the address in a register, by the tool's symbols.
    Symbol {
        /// Which.
        register: Register,
        /// The symbol, and the distance from it.
        symbol: String,
    },
    /// Where the TSS or the LDT is, from a tool that does not say which selector finds it.
    Base {
        /// TR or LDTR.
        register: SegmentRegister,
        /// The address.
        base: u64,
        /// The last byte, where the tool says it.
        limit: Option<u32>,
    },
    /// A model-specific register.
    Msr {
        /// The number that RDMSR takes.
        number: u32,
        /// Its value.
        value: u64,
    },
    /// A descriptor as a tool explains it.
    Descriptor(PrintedDescriptor),
    /// A gate as a tool explains it.
    Gate(PrintedGate),
    /// A field of the TSS whose address the text does not have.
    TssField {
        /// Its name, one of [`tollgate_x86::Tss32::FIELDS`] or [`tollgate_x86::Tss64::FIELDS`].
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// Evidence for the form in which the processor reads its tables.
    Form(Form),
}

impl What {
    /// A selector without its hidden part.
    pub(crate) const fn selector(register: SegmentRegister, selector: u16) -> Self {
        Self::Segment { register, selector: Selector(selector), hidden: None }
    }

    /// The address of a table alone.
    pub(crate) const fn base(table: TableRegister, base: u64) -> Self {
        Self::TableRegister { table, base: Some(base), limit: None }
    }

    pub(crate) const fn tss(base: u64) -> Self {
        Self::Base { register: SegmentRegister::Tr, base, limit: None }
    }

    pub(crate) const fn msr(msr: Msr, value: u64) -> Self {
        Self::Msr { number: msr.number(), value }
    }

    pub(crate) fn symbol(register: Register, symbol: &str) -> Self {
        Self::Symbol { register, symbol: symbol.to_owned() }
    }
}

/// GDTR or IDTR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableRegister {
    /// GDTR.
    Gdt,
    /// IDTR.
    Idt,
}

macro_rules! segment_registers {
    ($($register:ident $name:literal)+) => {
        /// A register that holds a selector.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SegmentRegister {
            $(#[doc = $name] $register,)+
        }

        impl SegmentRegister {
            /// All of them.
            pub const ALL: [Self; 8] = [$(Self::$register,)+];

            /// Its name, lower case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$register => $name,)+
                }
            }
        }
    };
}
segment_registers! { Cs "cs" Ss "ss" Ds "ds" Es "es" Fs "fs" Gs "gs" Ldtr "ldtr" Tr "tr" }

/// The hidden part of a segment register: the processor's copy of the descriptor that it loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    /// Where the segment begins.
    pub base: u64,
    /// How many low bits of the base the tool shows: 32 or 64.
    pub base_bits: u32,
    /// The limit in bytes.
    pub limit: u32,
    /// Type, S, DPL, P, AVL, L, D and G, where the tool shows them.
    pub rights: Option<AccessRights>,
}

/// A register that holds a number: lower case, and under the 64-bit name whatever the width is (`rip` for EIP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(
    /// One of [`Register::NAMES`].
    pub(crate) &'static str,
);

impl Register {
    /// All names.
    pub const NAMES: [&'static str; 31] = [
        "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15", "rip", "rflags", "cr0", "cr2", "cr3", "cr4", "cr8", "cpl", "smm", "dr0", "dr1", "dr2",
        "dr3", "dr6", "dr7",
    ];

    /// CR0.
    pub const CR0: Self = Self("cr0");
    /// CR3.
    pub const CR3: Self = Self("cr3");
    /// CR4.
    pub const CR4: Self = Self("cr4");
    /// RIP or EIP.
    pub const RIP: Self = Self("rip");
    /// RSP or ESP.
    pub const RSP: Self = Self("rsp");
    /// RFLAGS or EFLAGS.
    pub const RFLAGS: Self = Self("rflags");
    /// The current privilege level, where a tool names it.
    pub const CPL: Self = Self("cpl");
    /// Whether the processor is in system-management mode, where a tool names it.
    pub const SMM: Self = Self("smm");

    /// The register of this name, of either width and in any case: `rip`, `eip`, `EFL`, `eflags`.
    pub fn by_name(name: &str) -> Option<Self> {
        if name.len() > 6 {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let wide = match lower.as_str() {
            "efl" | "eflags" | "rfl" => "rflags".to_owned(),
            narrow if narrow.len() == 3 && narrow.starts_with('e') => narrow.replacen('e', "r", 1),
            _ => lower,
        };
        Self::NAMES.into_iter().find(|known| *known == wide).map(Self)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl SegmentRegister {
    /// Whether it is TR or LDTR, which hold selectors in every mode that uses them.
    pub(crate) const fn is_of_system(self) -> bool {
        matches!(self, Self::Tr | Self::Ldtr)
    }

    /// The register of this name, in any case; `ldt` is QEMU's name of LDTR.
    pub fn by_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("ldt") {
            return Some(Self::Ldtr);
        }
        Self::ALL.into_iter().find(|register| register.name().eq_ignore_ascii_case(name))
    }
}

impl TableRegister {
    /// Its name, lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gdt => "gdtr",
            Self::Idt => "idtr",
        }
    }
}

/// Evidence in a tool's output for the form of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The Windows debugger prints addresses of 64 bits: the target is a 64-bit system.
    DebuggerWide,
    /// The Windows debugger prints addresses of 32 bits.
    DebuggerNarrow,
    /// QEMU prints table registers in 64 bits, which it does while EFER.LMA is set.
    QemuLong,
    /// QEMU prints table registers in 32 bits, which it does while EFER.LMA is clear.
    QemuLegacy,
    /// A name that only a 64-bit system has, such as `_KIDTENTRY64` or `64-Bit Interrupt Gate`.
    LongName,
    /// A name that only a 32-bit system has, such as `_KIDTENTRY`.
    LegacyName,
    /// The Windows debugger prints IDTR or GDTR in 32 bits.
    NarrowTableRegister,
    /// The registers are named RIP, RSP.
    WideRegisters,
    /// The registers are named EIP, ESP.
    NarrowRegisters,
    /// Bochs logs that the processor is in long mode.
    BochsLong,
    /// Bochs logs that the processor is in another mode.
    BochsLegacy,
}

/// A line that names the source of the following lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// The line, from 1.
    pub line: usize,
    /// The line itself, or its beginning; of a prompt that names a processor, the prompt.
    pub text: String,
    /// The system or processor that it names.
    pub of: Named,
    /// How it is set off, where it is.
    pub style: Option<Style>,
}

/// How a heading is set off from text. Headings of one style begin sections of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// By a mark before it, such as a black square.
    Mark(char),
    /// By its number, of so many parts: 2 of `3.1`.
    Numbered(usize),
    /// By its level: Markdown's, HTML's, or a line of `=` or `-` below it.
    Level(u8),
}

impl Dump {
    /// The dump without prose and unnamed headings: all is of one machine, as far as it does not contradict itself.
    #[must_use]
    pub fn of_one_machine(mut self) -> Self {
        self.prose.clear();
        self.headings.retain(|heading| heading.of != Named::Section);
        self
    }
}

/// The system or processor that a heading names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// An operating system.
    System {
        /// Its name and version, such as `windows xp`.
        name: String,
        /// Whether it is named a 64-bit one.
        is_64_bit: Option<bool>,
    },
    /// A processor, by its number.
    Processor(u32),
    /// None: it begins another section.
    Section,
}
