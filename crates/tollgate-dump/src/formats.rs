//! The table of all formats: the only list of their names.

use crate::format::Format;
use crate::line::Line;
use crate::sink::Sink;
use crate::{
    assembler, bochs_registers, bochs_tables, bochs_tss, gdb, hex, hexdump, kd_dg, kd_dt, kd_idt, kd_memory,
    kd_registers, linux, qemu,
};

/// A reader of lines: returns whether the line is of its family, and puts its content into the sink.
pub(crate) type Reader = fn(&mut Sink, &Line<'_>) -> bool;

/// A format and how to name it.
#[derive(Debug, Clone, Copy)]
pub struct FormatSpec {
    /// Which.
    pub format: Format,
    /// Its name on the command line.
    pub name: &'static str,
    /// A description in a sentence.
    pub about: &'static str,
    /// A line of it.
    pub example: &'static str,
    pub(crate) read: Reader,
}

/// All formats, in the order in which a line is tried: a format that can be mistaken for another comes after it.
pub const FORMATS: &[FormatSpec] = &[
    FormatSpec {
        format: Format::Dt,
        name: "dt",
        about: "Windows debugger, dt of _KIDTENTRY, _KGDTENTRY, _KTSS and their 64-bit forms.",
        example: "   +0x002 Selector         : 8",
        read: kd_dt::read,
    },
    FormatSpec {
        format: Format::Dg,
        name: "dg",
        about: "Windows debugger, dg: selectors, in 32 and 64 bits.",
        example: "0028 80042000 000020ab TSS32 Busy 0 Nb By P  Nl 0000008b",
        read: kd_dg::read,
    },
    FormatSpec {
        format: Format::KdIdt,
        name: "idt",
        about: "Windows debugger, !idt: handlers by vector.",
        example: "2e:  808655cd nt!KiSystemService",
        read: kd_idt::read,
    },
    FormatSpec {
        format: Format::Rdmsr,
        name: "rdmsr",
        about: "Windows debugger, rdmsr, in both spellings.",
        example: "msr[c0000081] = 00230010`00000000",
        read: kd_registers::read_msr,
    },
    FormatSpec {
        format: Format::Hexdump,
        name: "hexdump",
        about: "hexdump -C: bytes with their text between bars.",
        example: "00000000  ff ff 00 00 00 9b cf 00  ff ff 00 00 00 93 cf 00  |................|",
        read: hexdump::read_canonical,
    },
    FormatSpec {
        format: Format::Xxd,
        name: "xxd",
        about: "xxd: groups of bytes after an offset and a colon.",
        example: "00000000: ffff 0000 009b cf00 ffff 0000 0093 cf00  ................",
        read: hexdump::read_xxd,
    },
    FormatSpec {
        format: Format::Od,
        name: "od",
        about: "od -t x1, x2, x4 or x8, and hexdump without -C: words after an offset of 6 or 7 digits.",
        example: "0000000 ff ff 00 00 00 9b cf 00 ff ff 00 00 00 93 cf 00",
        read: hexdump::read_od,
    },
    FormatSpec {
        format: Format::Db,
        name: "db",
        about: "Windows debugger, db: bytes with a dash in the middle and their text.",
        example: "8003f570  cd 55 08 00 00 ee 86 80-8f 8c 08 00 00 8e 86 80  .U..............",
        read: kd_memory::read,
    },
    FormatSpec {
        format: Format::Dw,
        name: "dw",
        about: "Windows debugger, dw: words of 2 bytes.",
        example: "8003f570  55cd 0008 ee00 8086 8c8f 0008 8e00 8086",
        read: kd_memory::read,
    },
    FormatSpec {
        format: Format::Dd,
        name: "dd",
        about: "Windows debugger, dd: words of 4 bytes.",
        example: "8003f570  000855cd 8086ee00 00088c8f 80868e00",
        read: kd_memory::read,
    },
    FormatSpec {
        format: Format::Dq,
        name: "dq",
        about: "Windows debugger, dq: words of 8 bytes.",
        example: "fffff800`01d51010  00209b00`00000000 00cf9300`0000ffff",
        read: kd_memory::read,
    },
    FormatSpec {
        format: Format::Dps,
        name: "dps",
        about: "Windows debugger, dps, dds and dqs: one word a line, with its symbol.",
        example: "fffff800`00b95080  fffff800`01023d80 nt!KiSystemCall32",
        read: kd_memory::read,
    },
    FormatSpec {
        format: Format::Qemu,
        name: "qemu",
        about: "QEMU, info registers and its -d cpu_reset log, in 32 and 64 bits.",
        example: "TR =0040 fffffe0000003000 00004087 00008b00 DPL=0 TSS64-busy",
        read: qemu::read,
    },
    FormatSpec {
        format: Format::BochsTables,
        name: "bochs-tables",
        about: "Bochs, info gdt and info idt.",
        example: "IDT[0x2e]=32-Bit Interrupt Gate target=0x0008:0x808655cd, DPL=3",
        read: bochs_tables::read,
    },
    FormatSpec {
        format: Format::BochsTss,
        name: "bochs-tss",
        about: "Bochs, info tss.",
        example: "ss:esp(0): 0x0018:0xc0218000",
        read: bochs_tss::read,
    },
    FormatSpec {
        format: Format::BochsRegisters,
        name: "bochs",
        about: "Bochs, sreg, creg and r.",
        example: "tr:0x0040, dh=0x00008b14, dl=0xc380006b, valid=1",
        read: bochs_registers::read,
    },
    FormatSpec {
        format: Format::KdRegisters,
        name: "r",
        about: "Windows debugger, r: registers by name.",
        example: "idtr=8003f400",
        read: kd_registers::read,
    },
    FormatSpec {
        format: Format::GdbMemory,
        name: "x",
        about: "gdb, x/xb, x/xh, x/xw and x/xg; Bochs' and QEMU's x.",
        example: "0x8003f570 <idt_table+368>:\t0x000855cd\t0x8086ee00",
        read: gdb::read_memory,
    },
    FormatSpec {
        format: Format::GdbRegisters,
        name: "gdb",
        about: "gdb, info registers.",
        example: "rip            0xffffffff81e00080  0xffffffff81e00080 <entry_SYSCALL_64>",
        read: gdb::read_registers,
    },
    FormatSpec {
        format: Format::Assembler,
        name: "asm",
        about: "Data directives of GNU as and NASM: .quad, .long, .word, .byte, dq, dd, dw, db.",
        example: ".quad 0x00cf9b000000ffff",
        read: assembler::read,
    },
    FormatSpec {
        format: Format::Oops,
        name: "oops",
        about: "Linux, the registers in a report of an oops or a panic.",
        example: "CS:  0010 DS: 0000 ES: 0000 CR0: 0000000080050033",
        read: linux::read,
    },
    FormatSpec {
        format: Format::Hex,
        name: "hex",
        about: "Digits alone, two to a byte in memory order; words with 0x are values, lowest byte first.",
        example: "ffff0000009bcf00",
        read: hex::read,
    },
];

impl Format {
    /// Its entry in the table.
    pub fn spec(self) -> &'static FormatSpec {
        // Every format has an entry: a test goes through them.
        FORMATS.iter().find(|spec| spec.format == self).unwrap_or(&FORMATS[FORMATS.len() - 1])
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The format of this name.
    pub fn of(name: &str) -> Option<Self> {
        FORMATS.iter().find(|spec| spec.name == name).map(|spec| spec.format)
    }
}

/// The readers that are tried on each line, in this order.
pub(crate) fn readers(hint: Option<Format>) -> Vec<Reader> {
    if let Some(hint) = hint {
        return vec![hint.spec().read];
    }
    let mut readers: Vec<Reader> = FORMATS.iter().map(|spec| spec.read).collect();
    // The formats of one family stand together and are read by one function.
    readers.dedup_by(|a, b| std::ptr::fn_addr_eq(*a, *b));
    readers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_to_one_and_examples_are_read_as_what_they_are() {
        for spec in FORMATS {
            assert_eq!(Format::of(spec.name), Some(spec.format));
            assert_eq!(spec.format.spec().name, spec.name);
            for hint in [Some(spec.format), None] {
                let dump = crate::read(spec.example.as_bytes(), hint);
                assert!(dump.complaints.is_empty(), "{}: {dump:?}", spec.name);
                assert!(
                    dump.pieces.iter().all(|piece| piece.format == spec.format),
                    "{}: {dump:?}",
                    spec.name
                );
                // A field of a structure says nothing without the structure's name, which is on a line of its own.
                assert!(spec.format == Format::Dt || !dump.pieces.is_empty(), "{}: {dump:?}", spec.name);
            }
        }
    }
}
