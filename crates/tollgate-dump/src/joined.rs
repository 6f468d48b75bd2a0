use std::{collections::BTreeMap, fmt};

use tollgate_x86::{AccessRights, Selector, Width};

use crate::piece::{Heading, Register, SegmentRegister};
use crate::printed::{PrintedDescriptor, PrintedGate};
use crate::{format::Format, memory::Memory, sourced::Sourced};

/// The state of one system, or of one of its processors, as far as the text shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Joined {
    /// The line that named the system, if any.
    pub heading: Option<Heading>,
    /// Why it is separate from the previous state; `None` for the first.
    pub apart: Option<Apart>,
    /// The formats that it was read from, in the order of their first lines.
    pub formats: Vec<Format>,
    /// The first and the last line.
    pub lines: (usize, usize),
    /// The form of its tables, and the evidence for it.
    pub width: WidthFound,
    /// Memory, by linear address.
    pub memory: Memory,
    /// Bytes without an address, grouped by answer.
    pub loose: Vec<Sourced<Vec<u8>>>,
    /// GDTR, the register of the global descriptor table.
    pub gdtr: Table,
    /// IDTR, the register of the interrupt descriptor table.
    pub idtr: Table,
    /// Segment registers, TR and LDTR.
    pub segments: BTreeMap<SegmentRegister, Segment>,
    /// Descriptors as tools explained them, by selector.
    pub printed_descriptors: BTreeMap<u16, Vec<Sourced<PrintedDescriptor>>>,
    /// Gates as tools explained them, by vector.
    pub printed_gates: BTreeMap<u8, Vec<Sourced<PrintedGate>>>,
    /// Rows of a list of gates with 8-byte entries, until they are joined.
    pub(crate) gate_slots: BTreeMap<u16, Sourced<PrintedGate>>,
    /// Addresses of TSS and LDT, from a tool that does not print their selectors.
    pub bases: BTreeMap<SegmentRegister, Table>,
    /// Fields of the TSS that were printed without its address.
    pub printed_tss: BTreeMap<&'static str, Sourced<u64>>,
    /// Model-specific registers, by number.
    pub msrs: BTreeMap<u32, Sourced<u64>>,
    /// Other registers; the last value of each.
    pub registers: BTreeMap<Register, Sourced<u64>>,
    /// A tool's symbols for the addresses in registers.
    pub symbols: BTreeMap<Register, Sourced<String>>,
    /// Values in the text that contradict each other.
    pub contradictions: Vec<Contradiction>,
    /// Known defects of the tools that printed it.
    pub defects: Vec<Defect>,
}

/// Why a state is separate from the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// The line names another system or processor.
    Named(usize),
    /// A heading at this line begins another section.
    Section(usize),
    /// Prose separates the two at this line, and nothing connects them.
    Prose(usize),
    /// From this line on, something that a machine has once has another value.
    Contradiction(usize),
    /// From this line on, the tables have another width.
    Width(usize),
}

impl Apart {
    /// Returns whether both may nevertheless be from one machine.
    pub const fn is_doubtful(self) -> bool {
        matches!(self, Self::Section(_) | Self::Prose(_))
    }
}

/// The meaning of segment registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segmentation {
    /// A sixteenth of the base, and the IDT has 4 bytes for a vector: CR0.PE is clear.
    Real,
    /// A sixteenth of the base, with the tables of protected mode: EFLAGS.VM is set.
    Virtual8086,
    /// A selector, as far as the text shows.
    Protected,
}

/// GDTR or IDTR.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Linear address of the table.
    pub base: Option<Sourced<u64>>,
    /// Offset of its last byte.
    pub limit: Option<Sourced<u32>>,
}

/// A segment register, TR or LDTR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The visible part.
    pub selector: Sourced<Selector>,
    /// Base in the hidden part, and the number of its known low bits: 32 or 64.
    pub base: Option<(Sourced<u64>, u32)>,
    /// Limit in the hidden part, in bytes.
    pub limit: Option<Sourced<u32>>,
    /// Access rights in the hidden part.
    pub rights: Option<Sourced<AccessRights>>,
}

impl Segment {
    /// Returns whether the hidden part is as real mode loads it, which it stays from the setting of CR0.PE to the next
    /// load: present, with a base of 16 × the register. In protected mode a null selector leaves a hidden part that is not
    /// present.
    pub(crate) fn is_of_real_mode(&self) -> bool {
        let value = u64::from(self.selector.value.0);
        let is_present = self.rights.as_ref().is_some_and(|rights| rights.value.with_limit(0).p);
        is_present && self.base.as_ref().is_some_and(|(base, _)| base.value == 16 * value)
    }
}

/// The form in which the processor reads its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WidthFound {
    /// The form; `None` without evidence or with equally strong evidence for both, so that both readings are possible.
    pub width: Option<Width>,
    /// Whether it is certain, not only likely.
    pub is_certain: bool,
    /// The evidence, the strongest first.
    pub reasons: Vec<Reason>,
}

/// Evidence for one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Line number; `None` for the caller's choice.
    pub line: Option<usize>,
    /// The form that it supports.
    pub width: Width,
    /// Its strength.
    pub weight: Weight,
    /// Description, a sentence without its full stop.
    pub why: String,
}

/// The strength of evidence, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Usual, with exceptions.
    Hint,
    /// The tool prints it like this in nearly every case.
    Strong,
    /// Nothing else is possible.
    Proof,
    /// The caller's choice.
    Asked,
}

/// An entry of the GDT in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GdtEntry {
    /// Its selector, with RPL 0.
    pub selector: u16,
    /// Linear address.
    pub address: u64,
    /// Its 8 bytes, or 16 if form and type require it and all are known.
    pub bytes: Sourced<Vec<u8>>,
}

/// An entry of the IDT in memory: 8 or 16 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdtEntry {
    /// Its vector.
    pub vector: u8,
    /// Linear address.
    pub address: u64,
    /// Its bytes.
    pub bytes: Sourced<Vec<u8>>,
}

/// The TSS, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The selector in TR.
    pub selector: Option<Sourced<Selector>>,
    /// Linear address, and its source.
    pub base: Option<(Sourced<u64>, Origin)>,
    /// Offset of the last byte, and its source.
    pub limit: Option<(Sourced<u64>, Origin)>,
    /// Fields by the names of [`tollgate_x86::Tss32::FIELDS`] or [`tollgate_x86::Tss64::FIELDS`].
    pub fields: Vec<(&'static str, Sourced<u64>)>,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The hidden part of the register.
    Hidden,
    /// The bytes of the descriptor in memory.
    Bytes,
    /// A tool's explanation of the descriptor.
    Explained,
    /// A tool that prints only the address.
    Named,
}

/// Values that cannot all be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The lines that contradict each other.
    pub lines: Vec<usize>,
    /// Description, a sentence without its full stop.
    pub what: String,
}

/// An occurrence of a tool's known defect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The affected lines.
    pub lines: Vec<usize>,
    /// The kind of defect.
    pub of: DefectOf,
}

macro_rules! defects {
    ($($defect:ident $text:literal;)+) => {
        /// The known defects of tools.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum DefectOf {
            $(#[doc = $text] $defect,)+
        }

        impl fmt::Display for DefectOf {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$defect => $text,)+
                })
            }
        }
    };
}

defects! {
    DgCutsBase
        "WinDbg's dg reads a 16-byte system descriptor as 8 bytes: it says TSS32 and has the low 32 bits of the base";
    DgBogusRow
        "WinDbg's dg reads the upper 8 bytes of a 16-byte descriptor as a descriptor: this row is not one";
    DgExtendsSign "WinDbg's dg prints a 32-bit base sign-extended: the upper 32 bits are 0";
    BochsCutsBase
        "Bochs reads a 16-byte system descriptor as 8 bytes: it says 32-Bit TSS and ??? for the upper half";
    BochsHalvesGates "Bochs lists a 16-byte gate as two entries of 8 bytes: its vector is half of the first one's number";
    BochsHalfGate
        "Bochs lists a 16-byte gate as two entries of 8 bytes: this is half a gate, of the vector that is half of its number";
    BochsReadsTss32 "Bochs reads the TSS as one of 32 bits, in long mode also";
    PcrTakesNames
        "WinDbg's !pcr prints GdtBase as NtTib.ExceptionList and TssBase as NtTib.StackBase on a 64-bit target, and 0 as IDT, GDT and TSS";
    BochsLeavesOut "Bochs omits DPL and P of code and data segments";
    QemuHiddenOnly "QEMU shows the hidden parts of the segment registers, not the descriptors in the tables";
    QemuCutsCr4 "QEMU prints the low 32 bits of CR4, without bit 32 (FRED)";
    QemuCutsBases "QEMU prints the low 32 bits of bases while 32-bit code runs in long mode";
    IdtVectorNoise "WinDbg's !idt printed other digits in front of the vector";
}
