use serde::Serialize;
use tollgate_x86::{AccessRights, Msr, Selector};

use crate::printed::{PrintedDescriptor, PrintedGate};
use crate::{complaint::Complaint, format::Format};

/// The pieces of a text, before they are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dump {
    /// The understood pieces, in the order of the text.
    pub pieces: Vec<Piece>,
    /// Lines that name the system or processor of the following text, or that begin another section.
    pub headings: Vec<Heading>,
    /// Lines of prose and of another tool's prompt, the first one between two pieces.
    pub prose: Vec<usize>,
    /// The first lines that look like damaged data.
    pub complaints: Vec<Complaint>,
    /// How many more such lines there are.
    pub more_complaints: usize,
    /// Counts of lines.
    pub lines: Lines,
    /// The line from which nothing was read, because a limit was reached.
    pub cut: Option<usize>,
}

/// The lines of a text, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lines {
    /// All lines that were read.
    pub total: usize,
    /// Lines that hold data, or that belong to a table that does.
    pub understood: usize,
    /// Lines with nothing in them, or with only a prompt.
    pub empty: usize,
    /// All other lines: commands, prose.
    pub foreign: usize,
}

/// One piece of information in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Line number, from 1.
    pub line: usize,
    /// The format that it was read as.
    pub format: Format,
    /// Number of the tool's answer: nothing else stands between the lines of one answer.
    pub block: usize,
    /// Its content.
    pub what: What,
}

/// The content of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Bytes of memory, in memory order.
    Bytes {
        /// Linear address of the first byte, if the text has it.
        address: Option<u64>,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// GDTR or IDTR, as far as the line shows it.
    TableRegister {
        /// The register.
        table: TableRegister,
        /// Linear address of the table.
        base: Option<u64>,
        /// Offset of the last byte of the table.
        limit: Option<u32>,
    },
    /// A segment register, TR or LDTR: its selector, and its hidden part if the tool shows it.
    Segment {
        /// The register.
        register: SegmentRegister,
        /// The visible part.
        selector: Selector,
        /// The hidden part.
        hidden: Option<Hidden>,
    },
    /// Another register.
    Register {
        /// The name, see [`Register`].
        register: Register,
        /// Its value.
        value: u64,
    },
    /// A tool's symbol for the address in a register.
    Symbol {
        /// The register.
        register: Register,
        /// The symbol, and the distance from it.
        symbol: String,
    },
    /// The address of the TSS or the LDT, from a tool that does not print its selector.
    Base {
        /// TR or LDTR.
        register: SegmentRegister,
        /// Linear address.
        base: u64,
        /// Offset of the last byte, if the tool prints it.
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
    /// A field of a TSS at an unknown address.
    TssField {
        /// One of the names of [`tollgate_x86::Tss32::FIELDS`] or [`tollgate_x86::Tss64::FIELDS`].
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// Evidence for the form in which the processor reads its tables.
    Form(Form),
}

impl What {
    pub(crate) const fn selector(register: SegmentRegister, selector: u16) -> Self {
        Self::Segment { register, selector: Selector(selector), hidden: None }
    }

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

/// A descriptor table register without a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableRegister {
    /// GDTR, the register of the GDT.
    Gdt,
    /// IDTR, the register of the IDT.
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
            /// All of these registers.
            pub const ALL: [Self; 8] = [$(Self::$register,)+];

            /// Returns its name, in lower case.
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
    /// Base of the segment.
    pub base: u64,
    /// Number of low bits of the base that the tool shows: 32 or 64.
    pub base_bits: u32,
    /// The limit in bytes.
    pub limit: u32,
    /// Type, S, DPL, P, AVL, L, D and G, if the tool shows them.
    pub rights: Option<AccessRights>,
}

/// A numeric register: in lower case, and with the 64-bit name at any width (`rip` for EIP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub(crate) &'static str);

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
    /// The current privilege level, if a tool names it.
    pub const CPL: Self = Self("cpl");
    /// Whether the processor is in system-management mode, if a tool says so.
    pub const SMM: Self = Self("smm");

    /// Returns the register of a name of either width, in any case: `rip`, `eip`, `EFL`, `eflags`.
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

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl SegmentRegister {
    /// Returns whether it is TR or LDTR, which hold selectors in every mode that uses them.
    pub(crate) const fn is_of_system(self) -> bool {
        matches!(self, Self::Tr | Self::Ldtr)
    }

    /// Returns the register of a name, in any case; `ldt` is QEMU's name for LDTR.
    pub fn by_name(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("ldt") {
            return Some(Self::Ldtr);
        }
        Self::ALL.into_iter().find(|register| register.name().eq_ignore_ascii_case(name))
    }
}

impl TableRegister {
    /// Returns its name, in lower case.
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
    /// The Windows debugger prints 64-bit addresses: the target is a 64-bit system.
    DebuggerWide,
    /// The Windows debugger prints 32-bit addresses.
    DebuggerNarrow,
    /// QEMU prints table registers in 64 bits, as it does while EFER.LMA is set.
    QemuLong,
    /// QEMU prints table registers in 32 bits, as it does while EFER.LMA is clear.
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
    /// The line or its beginning; for a prompt that names a processor, the prompt.
    pub text: String,
    /// The system or processor that it names.
    pub of: Named,
    /// How it is set off from text, if it is.
    pub style: Option<Style>,
}

/// How a heading is set off from text. Headings of one style begin sections of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A mark before it, such as a black square.
    Mark(char),
    /// A number with this many parts: 2 for `3.1`.
    Numbered(usize),
    /// Its level, from Markdown, HTML, or a line of `=` or `-` below it.
    Level(u8),
}

impl Dump {
    /// Removes prose and unnamed headings: the whole dump is from one machine unless it contradicts itself.
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
        /// Name and version, such as `windows xp`.
        name: String,
        /// Whether the name is that of a 64-bit system.
        is_64_bit: Option<bool>,
    },
    /// A processor, by number.
    Processor(u32),
    /// Nothing: the heading begins another section.
    Section,
}
