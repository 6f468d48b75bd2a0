use crate::{Table, Vendor, Width};

use super::Step;
use super::registers::{Bounds, Mode, Register, Segment, SegmentRegister, TableRegister};

/// A machine that crossings are walked on: registers, tables and memory.
///
/// It answers `None` or [`Miss::Unknown`] for values that it does not know. The last methods read memory as the processor
/// would. A machine that knows the contents of a table but not its address, such as one from a debugger's listing,
/// overrides them.
pub trait Machine {
    /// Returns the processor's vendor.
    fn vendor(&self) -> Vendor;

    /// Returns whether it is in long mode: EFER.LMA.
    fn width(&self) -> Width;

    /// Returns the value of a register.
    fn register(&self, register: Register) -> Option<u64>;

    /// Loads a register with a value that may be unknown.
    fn set_register(&mut self, register: Register, value: Option<u64>);

    /// Returns the value of a segment register, including its hidden part.
    fn segment(&self, register: SegmentRegister) -> Segment;

    /// Loads a segment register. Loading CS changes the privilege level, and in long mode can change to or from 64-bit
    /// mode.
    fn set_segment(&mut self, register: SegmentRegister, segment: Segment);

    /// Returns base and limit of a descriptor table.
    fn table(&self, register: TableRegister) -> Bounds;

    /// Reads 1, 2, 4 or 8 bytes at a linear address.
    fn read(&mut self, address: u64, size: u8, by: By) -> Result<u64, Miss>;

    /// Writes 1, 2, 4 or 8 bytes at a linear address. `None` makes the bytes there unknown.
    fn write(&mut self, address: u64, size: u8, value: Option<u64>, by: By) -> Result<(), Miss>;

    /// Receives each step as it is made, before the next one is made.
    #[inline]
    fn step(&mut self, _step: &Step) {}

    /// Returns the current privilege level; in protected mode, that of CS.
    fn cpl(&self) -> Option<u8> {
        Some(self.segment(SegmentRegister::Cs).selector?.rpl())
    }

    /// Returns the mode; in long mode, CS.L decides between its two submodes.
    fn mode(&self) -> Option<Mode> {
        match self.width() {
            Width::Legacy => Some(Mode::Protected),
            Width::Long if self.segment(SegmentRegister::Cs).hidden?.descriptor.l => Some(Mode::Long64),
            Width::Long => Some(Mode::Compatibility),
        }
    }

    /// Reads the 8 bytes at an offset of the GDT or of the current LDT, as one number.
    fn descriptor(&mut self, table: Table, offset: u16) -> Result<u64, Miss> {
        let base = self.base_of(table).ok_or(Miss::Unknown)?;
        self.read(self.width().linear(base.wrapping_add(u64::from(offset))), 8, By::System)
    }

    /// Writes the access byte of the descriptor at an offset, after its accessed bit was set.
    fn set_access(&mut self, table: Table, offset: u16, access: u8) -> Result<(), Miss> {
        match self.base_of(table) {
            Some(base) => {
                let address = self.width().linear(base.wrapping_add(u64::from(offset)).wrapping_add(5));
                self.write(address, 1, Some(u64::from(access)), By::System)
            }
            None => Ok(()),
        }
    }

    /// Reads the 8 bytes at an offset of the interrupt descriptor table, as one number.
    fn gate(&mut self, offset: u16) -> Result<u64, Miss> {
        let base = self.table(TableRegister::Idtr).base.ok_or(Miss::Unknown)?;
        self.read(self.width().linear(base.wrapping_add(u64::from(offset))), 8, By::System)
    }

    /// Reads a field of the current task-state segment.
    fn task_state(&mut self, offset: u16, size: u8) -> Result<u64, Miss> {
        let base = self.segment(SegmentRegister::Tr).hidden.ok_or(Miss::Unknown)?.base;
        self.read(self.width().linear(base.wrapping_add(u64::from(offset))), size, By::System)
    }

    /// Returns the base of the GDT or of the current LDT.
    fn base_of(&self, table: Table) -> Option<u64> {
        match table {
            Table::Gdt => self.table(TableRegister::Gdtr).base,
            Table::Ldt => Some(self.segment(SegmentRegister::Ldtr).hidden?.base),
        }
    }
}

impl Width {
    /// Truncates the sum of base and offset to a linear address: 32 bits outside long mode.
    pub const fn linear(self, address: u64) -> u64 {
        match self {
            Self::Legacy => address & 0xffff_ffff,
            Self::Long => address,
        }
    }
}

/// The privilege of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// The processor itself, which reads its tables with supervisor privilege at any level.
    System,
    /// A program at this privilege level.
    Ring(u8),
}

/// Why memory could not be read or written.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Miss {
    /// A page fault, with the linear address for CR2 and the error code.
    PageFault { address: u64, code: u32 },
    /// The contents are unknown.
    Unknown,
}
