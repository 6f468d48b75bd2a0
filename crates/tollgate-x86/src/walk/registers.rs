//! The modes and registers of the machine that is walked.

use crate::{Descriptor, Msr, Selector, Table};

/// The modes that are walked. SDM 3A, "Modes of operation".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Protected mode outside long mode, with 32-bit or 16-bit segments.
    Protected,
    /// Long mode, running a 32-bit or 16-bit program.
    Compatibility,
    /// Long mode, running a 64-bit program.
    Long64,
}

/// A register that a crossing reads or loads; outside 64-bit mode its lower half.
#[expect(missing_docs, reason = "the names of the manuals")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Register {
    /// RIP or EIP: see [`Crossing`](super::Crossing) for which address it is.
    Rip,
    Rsp,
    Rflags,
    Rcx,
    Rdx,
    R11,
    Cr0,
    Cr4,
    /// A model-specific register. IA32_GS_BASE is the base of GS: one register by two names.
    Msr(Msr),
}

/// A register that holds a selector and a hidden part: of code, stack and data, the task register and that of the local
/// descriptor table.
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

/// The register of a descriptor table that has no selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TableRegister {
    /// Of the global descriptor table.
    Gdtr,
    /// Of the interrupt descriptor table.
    Idtr,
}

/// A table that an entry is looked up in.
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

/// Where a descriptor table begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Bounds {
    /// The linear address of its first byte.
    pub base: Option<u64>,
    /// The offset of its last byte.
    pub limit: Option<u32>,
}

/// The value of a segment register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Segment {
    /// The selector.
    pub selector: Option<Selector>,
    /// The hidden part.
    pub hidden: Option<Hidden>,
}

/// The hidden part of a segment register. SDM 3A, "Segment registers".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hidden {
    /// Where the segment begins. Of FS, GS, the TSS and the LDT it has 64 bits in long mode.
    pub base: u64,
    /// Limit and rights, as the descriptor has them. Its own `base` does not count. Not present stands for null.
    pub descriptor: Descriptor,
}

impl Segment {
    /// A selector with the hidden part that its descriptor of 8 bytes gives.
    pub const fn new(selector: Selector, descriptor: Descriptor) -> Self {
        let hidden = Hidden { base: descriptor.base as u64, descriptor };
        Self { selector: Some(selector), hidden: Some(hidden) }
    }

    /// A null selector, whose segment cannot be used.
    pub fn null(selector: Selector) -> Self {
        Self { selector: Some(selector), hidden: Some(Hidden::default()) }
    }
}
