//! The interface of the walk to a machine.

use crate::{Descriptor, Msr, Selector, Table, Vendor, Width};

use super::Step;

/// A machine that crossings are walked on: registers, tables and memory.
///
/// It answers with none, or with [`Miss::Unknown`], where it does not know. The last methods look in memory where the
/// processor would: a machine that knows a table but not its address, such as one from a debugger's listing,
/// overrides them.
pub trait Machine {
    /// The processor's vendor.
    fn vendor(&self) -> Vendor;

    /// Whether it is in long mode: EFER.LMA.
    fn width(&self) -> Width;

    /// The value of a register.
    fn register(&self, register: Register) -> Option<u64>;

    /// Loads a register, with a value that may be unknown.
    fn set_register(&mut self, register: Register, value: Option<u64>);

    /// The value of a segment register, its hidden part included.
    fn segment(&self, register: SegmentRegister) -> Segment;

    /// Loads a segment register. With CS the privilege level changes, and in long mode 64-bit mode may.
    fn set_segment(&mut self, register: SegmentRegister, segment: Segment);

    /// Where a descriptor table is.
    fn table(&self, register: TableRegister) -> Bounds;

    /// Reads 1, 2, 4 or 8 bytes at a linear address.
    fn read(&mut self, address: u64, size: u8, by: By) -> Result<u64, Miss>;

    /// Writes 1, 2, 4 or 8 bytes at a linear address. Without a value the bytes there are unknown from now on.
    fn write(&mut self, address: u64, size: u8, value: Option<u64>, by: By) -> Result<(), Miss>;

    /// Receives each step as it is made. The next one is made after this returns.
    #[inline]
    fn step(&mut self, _step: &Step) {}

    /// The current privilege level: in protected mode that of CS.
    fn cpl(&self) -> Option<u8> {
        Some(self.segment(SegmentRegister::Cs).selector?.rpl())
    }

    /// The mode: in long mode CS.L decides which half of it.
    fn mode(&self) -> Option<Mode> {
        match self.width() {
            Width::Legacy => Some(Mode::Protected),
            Width::Long if self.segment(SegmentRegister::Cs).hidden?.descriptor.l => Some(Mode::Long64),
            Width::Long => Some(Mode::Compatibility),
        }
    }

    /// The 8 bytes at an offset of the GDT or of the current LDT, as one number.
    fn descriptor(&mut self, table: Table, offset: u16) -> Result<u64, Miss> {
        let base = self.base_of(table).ok_or(Miss::Unknown)?;
        self.read(self.width().linear(base.wrapping_add(u64::from(offset))), 8, By::System)
    }

    /// Writes the access byte of the descriptor at an offset: a bit was set that says it was loaded.
    fn set_access(&mut self, table: Table, offset: u16, access: u8) -> Result<(), Miss> {
        match self.base_of(table) {
            Some(base) => {
                let address = self.width().linear(base.wrapping_add(u64::from(offset)).wrapping_add(5));
                self.write(address, 1, Some(u64::from(access)), By::System)
            }
            None => Ok(()),
        }
    }

    /// The 8 bytes at an offset of the interrupt descriptor table, as one number.
    fn gate(&mut self, offset: u16) -> Result<u64, Miss> {
        let base = self.table(TableRegister::Idtr).base.ok_or(Miss::Unknown)?;
        self.read(self.width().linear(base.wrapping_add(u64::from(offset))), 8, By::System)
    }

    /// A field of the current task-state segment.
    fn task_state(&mut self, offset: u16, size: u8) -> Result<u64, Miss> {
        let base = self.segment(SegmentRegister::Tr).hidden.ok_or(Miss::Unknown)?.base;
        self.read(self.width().linear(base.wrapping_add(u64::from(offset))), size, By::System)
    }

    /// Where the GDT or the current LDT begins.
    fn base_of(&self, table: Table) -> Option<u64> {
        match table {
            Table::Gdt => self.table(TableRegister::Gdtr).base,
            Table::Ldt => Some(self.segment(SegmentRegister::Ldtr).hidden?.base),
        }
    }
}

impl Width {
    /// The linear address that a sum of base and offset is: outside long mode it has 32 bits.
    pub const fn linear(self, address: u64) -> u64 {
        match self {
            Self::Legacy => address & 0xffff_ffff,
            Self::Long => address,
        }
    }
}

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
    pub const fn of(selector: Selector, descriptor: Descriptor) -> Self {
        let hidden = Hidden { base: descriptor.base as u64, descriptor };
        Self { selector: Some(selector), hidden: Some(hidden) }
    }

    /// A null selector, whose segment cannot be used.
    pub fn null(selector: Selector) -> Self {
        Self { selector: Some(selector), hidden: Some(Hidden::default()) }
    }
}

/// The privilege of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The processor itself, which reads its tables as the kernel at any level.
    System,
    /// A program at this privilege level.
    Ring(u8),
}

/// Why memory was not read or written.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Miss {
    /// A page fault, by the linear address for CR2 and the error code.
    PageFault { address: u64, code: u32 },
    /// The content is not known.
    Unknown,
}
