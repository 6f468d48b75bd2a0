use tollgate_x86::walk::{Hidden, SegmentRegister, TableRegister};
use tollgate_x86::{Msr, Selector};

/// A write of an instruction, or of its crossing, to anything but a general register.
#[expect(missing_docs, reason = "the sentence of a variant speaks of its fields")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// 1, 2, 4 or 8 bytes of memory, at a physical address.
    Memory { address: u64, bytes: u8, value: u64 },
    /// A value written to CR0, CR2, CR3, CR4 or CR8.
    Control { number: u8, value: u64 },
    /// A register of kernel entry, by WRMSR.
    Msr { msr: Msr, value: u64 },
    /// GDTR or IDTR.
    Table { register: TableRegister, base: u64, limit: u16 },
    /// A segment register, LDTR or TR, with the hidden part that was loaded.
    Segment { register: SegmentRegister, selector: Selector, hidden: Hidden },
    /// A byte written to a port.
    Port { port: u16, value: u8 },
}
