//! The formats of input: the only list of their names. Their readers are in the crate's root.

/// A format with its name and description.
#[derive(Debug, Clone, Copy)]
pub struct FormatSpec {
    /// The format.
    pub format: Format,
    /// Name on the command line.
    pub name: &'static str,
    /// Description, in a sentence.
    pub about: &'static str,
    /// An example line.
    pub example: &'static str,
}

macro_rules! formats {
    ($($format:ident $name:literal $about:literal $example:literal;)+) => {
        /// The format of a tool's output.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Format {
            $(#[doc = $about] $format,)+
        }

        /// All formats, in the order in which a line is tried: a format that can be mistaken for another comes after it.
        pub const FORMATS: &[FormatSpec] = &[
            $(FormatSpec { format: Format::$format, name: $name, about: $about, example: $example },)+
        ];
    };
}

formats! {
    Dt "dt" "Windows debugger, dt of _KIDTENTRY, _KGDTENTRY, _KTSS and their 64-bit forms."
        "   +0x002 Selector         : 8";
    Dg "dg" "Windows debugger, dg: selectors, in 32 and 64 bits."
        "0028 80042000 000020ab TSS32 Busy 0 Nb By P  Nl 0000008b";
    KdIdt "idt" "Windows debugger, !idt: handlers by vector."
        "2e:  808655cd nt!KiSystemService";
    Rdmsr "rdmsr" "Windows debugger, rdmsr, in both spellings."
        "msr[c0000081] = 00230010`00000000";
    KdPcr "pcr" "Windows debugger, !pcr and dt of _KPCR: addresses of the tables."
        "KPCR for Processor 0 at ffdff000:";
    Oops "oops" "Linux, the registers in a report of an oops or a panic."
        "CS:  0010 DS: 0000 ES: 0000 CR0: 0000000080050033";
    Hexdump "hexdump" "hexdump -C: bytes with their text between bars."
        "00000000  ff ff 00 00 00 9b cf 00  ff ff 00 00 00 93 cf 00  |................|";
    Xxd "xxd" "xxd: groups of bytes after an offset and a colon."
        "00000000: ffff 0000 009b cf00 ffff 0000 0093 cf00  ................";
    Od "od" "od -t x1, x2, x4 or x8, and hexdump without -C: words after an offset of 6 or 7 digits."
        "0000000 ff ff 00 00 00 9b cf 00 ff ff 00 00 00 93 cf 00";
    Db "db" "Windows debugger, db: bytes with a dash in the middle and their text."
        "8003f570  cd 55 08 00 00 ee 86 80-8f 8c 08 00 00 8e 86 80  .U..............";
    Dw "dw" "Windows debugger, dw: words of 2 bytes."
        "8003f570  55cd 0008 ee00 8086 8c8f 0008 8e00 8086";
    Dd "dd" "Windows debugger, dd: words of 4 bytes."
        "8003f570  000855cd 8086ee00 00088c8f 80868e00";
    Dq "dq" "Windows debugger, dq: words of 8 bytes."
        "fffff800`01d51010  00209b00`00000000 00cf9300`0000ffff";
    Dps "dps" "Windows debugger, dps, dds and dqs: one word per line, with its symbol."
        "fffff800`00b95080  fffff800`01023d80 nt!KiSystemCall32";
    Qemu "qemu" "QEMU, info registers and its -d cpu_reset log, in 32 and 64 bits."
        "TR =0040 fffffe0000003000 00004087 00008b00 DPL=0 TSS64-busy";
    BochsTables "bochs-tables" "Bochs, info gdt, info ldt, info idt and info ivt."
        "IDT[0x2e]=32-Bit Interrupt Gate target=0x0008:0x808655cd, DPL=3";
    BochsTss "bochs-tss" "Bochs, info tss."
        "ss:esp(0): 0x0018:0xc0218000";
    BochsRegisters "bochs" "Bochs, sreg, creg and r."
        "tr:0x0040, dh=0x00008b14, dl=0xc380006b, valid=1";
    BochsLog "bochs-log" "Bochs, what it logs of a processor at a triple fault or panic."
        "00049935377i[CPU0  ] | CR3=0x00101000 CR4=0x00000020";
    KdRegisters "r" "Windows debugger, r: registers by name."
        "idtr=8003f400";
    GdbMemory "x" "gdb, x/xb, x/xh, x/xw and x/xg; Bochs' and QEMU's x."
        "0x8003f570 <idt_table+368>:\t0x000855cd\t0x8086ee00";
    GdbRegisters "gdb" "gdb, info registers."
        "rip            0xffffffff81e00080  0xffffffff81e00080 <entry_SYSCALL_64>";
    Assembler "asm" "Data directives of GNU as and NASM: .quad, .long, .word, .byte, dq, dd, dw, db."
        ".quad 0x00cf9b000000ffff";
    List "list" "One GDT entry per line, after its selector or index; GDT_ENTRY_INIT of Linux."
        "08: 00af9b000000ffff";
    Hex "hex" "Digits alone, two to a byte in memory order; words with 0x are values, lowest byte first."
        "ffff0000009bcf00";
}

impl Format {
    /// Returns its entry in the table.
    pub fn spec(self) -> &'static FormatSpec {
        &FORMATS[self as usize]
    }

    /// Returns its name on the command line.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// Returns the format of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        FORMATS.iter().find(|spec| spec.name == name).map(|spec| spec.format)
    }
}
