use crate::{Descriptor, Msr, Selector, Table};

/// The modes that the walk models. SDM 3A, "Modes of operation".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Protected mode outside long mode, with 32-bit or 16-bit segments.
    Protected,
    /// Long mode, running a 32-bit or 16-bit program.
    Compatibility,
    /// Long mode, running a 64-bit program.
    Long64,
}

/// A register that a crossing reads or loads. Outside 64-bit mode, only the lower half is used.
#[expect(missing_docs, reason = "the names of the manuals")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Register {
    /// RIP or EIP; [`Crossing`](super::Crossing) says which address it holds.
    Rip,
    Rsp,
    Rflags,
    Rcx,
    Rdx,
    R11,
    Cr0,
    Cr4,
    /// A model-specific register. IA32_GS_BASE is also the base of GS.
    Msr(Msr),
}

/// A register with a selector and a hidden part: the segment registers, TR and LDTR.
#[expect(missing_docs, reason = "the names of the manuals")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentRegister {
    Cs,
    Ss,
    Ds,
    Es,
    Fs,
    Gs,
    Tr,
    Ldtr,
}

/// A descriptor table register without a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableRegister {
    /// Register of the GDT.
    Gdtr,
    /// Register of the IDT.
    Idtr,
}

/// A table in which an entry is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Directory {
    /// The interrupt descriptor table.
    Idt,
    /// The global descriptor table.
    Gdt,
    /// The local descriptor table.
    Ldt,
}

impl From<Table> for Directory {
    fn from(table: Table) -> Self {
        if table == Table::Gdt { Self::Gdt } else { Self::Ldt }
    }
}

/// Base and limit of a descriptor table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bounds {
    /// Linear address of the first byte.
    pub base: Option<u64>,
    /// Offset of the last byte.
    pub limit: Option<u32>,
}

/// The contents of a segment register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Segment {
    /// The selector, if known.
    pub selector: Option<Selector>,
    /// The hidden part, if known.
    pub hidden: Option<Hidden>,
}

/// The hidden part of a segment register. SDM 3A, "Segment registers".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hidden {
    /// Base of the segment; 64 bits for FS, GS, TSS and LDT in long mode.
    pub base: u64,
    /// Limit and rights, as in the descriptor. Its `base` is ignored. Not present means null.
    pub descriptor: Descriptor,
}

impl Segment {
    /// Returns a selector with the hidden part from its 8-byte descriptor.
    pub const fn new(selector: Selector, descriptor: Descriptor) -> Self {
        let hidden = Hidden { base: descriptor.base as u64, descriptor };
        Self { selector: Some(selector), hidden: Some(hidden) }
    }

    /// Returns a null selector, whose segment cannot be used.
    pub fn null(selector: Selector) -> Self {
        Self { selector: Some(selector), hidden: Some(Hidden::default()) }
    }
}
