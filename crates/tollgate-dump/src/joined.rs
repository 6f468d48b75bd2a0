//! The state of a machine, put together from the pieces of a text.

use std::{collections::BTreeMap, fmt};

use tollgate_x86::{AccessRights, Selector, Width};

use crate::piece::{Heading, Register, SegmentRegister};
use crate::printed::{PrintedDescriptor, PrintedGate};
use crate::{format::Format, memory::Memory, sourced::Sourced};

/// One machine state: what one system, or one processor of it, holds according to the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Joined {
    /// The line that named the system, where one did.
    pub heading: Option<Heading>,
    /// Why it is not joined to the one before, of all but the first.
    pub apart: Option<Apart>,
    /// The formats that it was read from, in the order of their first lines.
    pub formats: Vec<Format>,
    /// The first and the last line.
    pub lines: (usize, usize),
    /// In which form the processor reads its tables, and why.
    pub width: WidthFound,
    /// Memory, by linear address.
    pub memory: Memory,
    /// Bytes without an address; those of one answer are together.
    pub loose: Vec<Sourced<Vec<u8>>>,
    /// GDTR.
    pub gdtr: Table,
    /// IDTR.
    pub idtr: Table,
    /// Segment registers, TR and LDTR.
    pub segments: BTreeMap<SegmentRegister, Segment>,
    /// Descriptors as tools explained them, by selector.
    pub printed_descriptors: BTreeMap<u16, Vec<Sourced<PrintedDescriptor>>>,
    /// Gates as tools explained them, by vector.
    pub printed_gates: BTreeMap<u8, Vec<Sourced<PrintedGate>>>,
    /// Rows of a list of gates in which every 8 bytes are an entry, until they are put together.
    pub(crate) gate_slots: BTreeMap<u16, Sourced<PrintedGate>>,
    /// Where TSS and LDT are, from a tool that does not say which selectors find them.
    pub bases: BTreeMap<SegmentRegister, Table>,
    /// Fields of the TSS that were printed without its address.
    pub printed_tss: BTreeMap<&'static str, Sourced<u64>>,
    /// Model-specific registers, by number.
    pub msrs: BTreeMap<u32, Sourced<u64>>,
    /// Other registers; of one that was printed again the last value.
    pub registers: BTreeMap<Register, Sourced<u64>>,
    /// What is at the addresses in registers, by the symbols of a tool.
    pub symbols: BTreeMap<Register, Sourced<String>>,
    /// Contradictions.
    pub contradictions: Vec<Contradiction>,
    /// Known defects of the tools that printed it.
    pub defects: Vec<Defect>,
}

/// Why a state is not joined to the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// A line names another system or processor.
    Named(usize),
    /// A heading begins another section.
    Section(usize),
    /// Prose stands between, and nothing ties the two.
    Prose(usize),
    /// A value of which a machine has one is another one, from this line on.
    Contradiction(usize),
    /// The tables are of another width, from this line on.
    Width(usize),
}

impl Apart {
    /// Whether both may be of one machine all the same.
    pub const fn is_doubtful(self) -> bool {
        matches!(self, Self::Section(_) | Self::Prose(_))
    }
}

/// What a segment register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segmentation {
    /// A sixteenth of the segment's base, and the IDT has 4 bytes for a vector: CR0.PE is clear.
    Real,
    /// A sixteenth of the segment's base, and the tables are those of protected mode: EFLAGS.VM is set.
    Virtual8086,
    /// A selector, as far as the text shows.
    Protected,
}

/// GDTR or IDTR.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The address of the table.
    pub base: Option<Sourced<u64>>,
    /// Its last byte.
    pub limit: Option<Sourced<u32>>,
}

/// A segment register, TR or LDTR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The visible part.
    pub selector: Sourced<Selector>,
    /// The base in the hidden part, and how many low bits of it are known: 32 or 64.
    pub base: Option<(Sourced<u64>, u32)>,
    /// The limit in the hidden part, in bytes.
    pub limit: Option<Sourced<u32>>,
    /// The rights in the hidden part.
    pub rights: Option<Sourced<AccessRights>>,
}

impl Segment {
    /// Whether the hidden part is as real mode loads it, which it is from the setting of CR0.PE to the next load: present, with a base of
    /// 16 × the register. In protected mode a null selector leaves none that is present.
    pub(crate) fn is_of_real_mode(&self) -> bool {
        let value = u64::from(self.selector.value.0);
        let is_present = self.rights.as_ref().is_some_and(|rights| rights.value.with_limit(0).p);
        is_present && self.base.as_ref().is_some_and(|(base, _)| base.value == 16 * value)
    }
}

/// In which form the processor reads its tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WidthFound {
    /// The form; none without evidence, or with evidence of equal strength for both: then both readings are possible.
    pub width: Option<Width>,
    /// Whether it is certain, and not only likely.
    pub is_certain: bool,
    /// The evidence, the strongest first.
    pub reasons: Vec<Reason>,
}

/// Evidence for one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The line; none for the caller's choice.
    pub line: Option<usize>,
    /// For which form it speaks.
    pub width: Width,
    /// How strongly.
    pub weight: Weight,
    /// The description: a sentence without its full stop.
    pub why: String,
}

/// The strength of evidence, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It is usual, and there are exceptions.
    Hint,
    /// The tool prints it so in nearly every case.
    Strong,
    /// It cannot be otherwise.
    Proof,
    /// The caller said so.
    Asked,
}

/// An entry of the GDT as it lies in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GdtEntry {
    /// Its selector, with RPL 0.
    pub selector: u16,
    /// Where it is.
    pub address: u64,
    /// Its 8 bytes, or 16 where the form and the type ask for it and all are known.
    pub bytes: Sourced<Vec<u8>>,
}

/// An entry of the IDT as it lies in memory: 8 or 16 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdtEntry {
    /// Its vector.
    pub vector: u8,
    /// Where it is.
    pub address: u64,
    /// Its bytes.
    pub bytes: Sourced<Vec<u8>>,
}

/// The TSS, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The selector in TR.
    pub selector: Option<Sourced<Selector>>,
    /// The address of the TSS, and its source.
    pub base: Option<(Sourced<u64>, Origin)>,
    /// Its last byte.
    pub limit: Option<(Sourced<u64>, Origin)>,
    /// Its fields, by the names of [`tollgate_x86::Tss32::FIELDS`] or [`tollgate_x86::Tss64::FIELDS`].
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
    /// A tool that names the address alone.
    Named,
}

/// Two things that cannot both be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The lines.
    pub lines: Vec<usize>,
    /// The contradiction: a sentence without its full stop.
    pub what: String,
}

/// A known defect of a tool that shows here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defect {
    /// The lines.
    pub lines: Vec<usize>,
    /// Which.
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
        "WinDbg's dg takes the upper 8 bytes of a 16-byte descriptor for a descriptor: this row is none";
    DgExtendsSign "WinDbg's dg prints a 32-bit base sign-extended: the upper 32 bits are 0";
    BochsCutsBase
        "Bochs reads a 16-byte system descriptor as 8 bytes: it says 32-Bit TSS and ??? for the upper half";
    BochsHalvesGates "Bochs lists a 16-byte gate as two entries of 8 bytes: its vector is half of the first one's number";
    BochsHalfGate
        "Bochs lists a 16-byte gate as two entries of 8 bytes: this is half a gate, of the vector that is half of its number";
    BochsReadsTss32 "Bochs reads the TSS as one of 32 bits, in long mode also";
    PcrTakesNames
        "WinDbg's !pcr prints GdtBase as NtTib.ExceptionList and TssBase as NtTib.StackBase on a 64-bit target, and 0 as IDT, GDT and TSS";
    BochsLeavesOut "Bochs leaves DPL and P of code and data segments out";
    QemuHiddenOnly "QEMU shows the hidden parts of the segment registers, not the descriptors in the tables";
    QemuCutsCr4 "QEMU prints the low 32 bits of CR4: bit 32, FRED, is not seen";
    QemuCutsBases "QEMU prints the low 32 bits of bases while 32-bit code runs in long mode";
    IdtVectorNoise "WinDbg's !idt printed other digits in front of the vector";
}
