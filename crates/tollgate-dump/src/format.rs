//! The formats that tables are printed in. `formats` has their names and readers.

/// The format of a tool's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Digits alone.
    Hex,
    /// The Windows debugger's `db`.
    Db,
    /// Its `dw`.
    Dw,
    /// Its `dd`.
    Dd,
    /// Its `dq`.
    Dq,
    /// Its `dps`, `dds` and `dqs`.
    Dps,
    /// Its `r`.
    KdRegisters,
    /// Its `rdmsr`.
    Rdmsr,
    /// Its `dg`.
    Dg,
    /// Its `!idt`.
    KdIdt,
    /// Its `dt`.
    Dt,
    /// QEMU's `info registers`.
    Qemu,
    /// Bochs' `info gdt` and `info idt`.
    BochsTables,
    /// Bochs' `info tss`.
    BochsTss,
    /// Bochs' `sreg`, `creg` and `r`.
    BochsRegisters,
    /// gdb's `x`.
    GdbMemory,
    /// gdb's `info registers`.
    GdbRegisters,
    /// Data directives of an assembler.
    Assembler,
    /// `hexdump -C`.
    Hexdump,
    /// `xxd`.
    Xxd,
    /// `od`, and `hexdump` without `-C`.
    Od,
    /// The kernel's messages about an exception.
    Oops,
}
