//! The tables themselves, as far as root may read them: MSRs through the msr device (Linux msr(4)), and the IDT, GDT and TSS
//! through /proc/kcore, the kernel's memory as a core file (fs/proc/kcore.c), with the addresses in /proc/kallsyms.

use std::io::{BufRead, BufReader};
use std::{fs::File, os::unix::fs::FileExt};

use object::{LittleEndian as LE, elf::PT_LOAD};
use tollgate_model::Unknown;
use tollgate_x86::{Msr, Tss64};

use crate::kcore::{self, Segment};
use crate::{answer::why, text::kernel_symbol};

/// A table in the kernel's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The kernel's symbol for it.
    pub symbol: &'static str,
    /// Virtual address of its first byte.
    pub address: u64,
    /// Contents of the table.
    pub bytes: Vec<u8>,
}

/// The tables of one processor, from kcore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// `idt_table`: 256 gates of 16 bytes.
    pub idt: Region,
    /// `gdt_page`: 16 descriptors of 8 bytes.
    pub gdt: Region,
    /// `cpu_tss_rw`.
    pub tss: Region,
    /// The selector of the TSS: `GDT_ENTRY_TSS` in asm/segment.h.
    pub tr: u16,
}

/// Reads processor `cpu`'s MSRs of kernel entry.
pub fn msrs(cpu: usize) -> Vec<(Msr, Result<u64, Unknown>)> {
    let path = format!("/dev/cpu/{cpu}/msr");
    let device = File::open(&path).map_err(|error| match why(&path, &error) {
        Unknown::Absent(why) => Unknown::Absent(format!("{why}: it comes with the module msr")),
        other => other,
    });
    let read = |msr: Msr| {
        let device = device.as_ref().map_err(Clone::clone)?;
        let mut value = [0; 8];
        device
            .read_exact_at(&mut value, msr.number().into())
            .map_err(|error| why(&format!("{path} {:x}", msr.number()), &error))?;
        Ok(u64::from_le_bytes(value))
    };
    Msr::ALL.into_iter().map(|msr| (msr, read(msr))).collect()
}

/// Reads the tables of processor `cpu`.
///
/// # Errors
/// Absent if the kernel has no kcore or its symbols omit data (CONFIG_KALLSYMS_ALL), refused if this user may not read it.
pub fn tables(cpu: usize) -> Result<Tables, Unknown> {
    const GATES: usize = 256 * 16;
    const DESCRIPTORS: usize = 16 * 8;
    const TSS_SELECTOR: u16 = 0x40;
    let core = Core::open(KCORE)?;
    let symbols = Symbols::read(KALLSYMS)?;
    let [idt, gdt, tss, offsets] =
        [IDT, GDT, TSS, OFFSETS].map(|symbol| symbols.address(symbol).map(|address| (symbol, address)));
    let region = |(symbol, address): (&'static str, u64), size| {
        Ok(Region { symbol, address, bytes: core.read(address, size)? })
    };
    // `per_cpu_ptr`: the distance of a processor's own copy from the symbol, in an array indexed by processor.
    let (_, offsets) = offsets?;
    let slot = offsets.wrapping_add(8 * cpu as u64);
    let offset = core.read(slot, 8)?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let own = |(symbol, address): (&'static str, u64)| (symbol, address.wrapping_add(offset));
    Ok(Tables {
        idt: region(idt?, GATES)?,
        gdt: region(own(gdt?), DESCRIPTORS)?,
        tss: region(own(tss?), Tss64::SIZE)?,
        tr: TSS_SELECTOR,
    })
}

const KCORE: &str = "/proc/kcore";
const KALLSYMS: &str = "/proc/kallsyms";
const IDT: &str = "idt_table";
const GDT: &str = "gdt_page";
const TSS: &str = "cpu_tss_rw";
const OFFSETS: &str = "__per_cpu_offset";

struct Symbols(Vec<(&'static str, u64)>);

impl Symbols {
    /// Kernels have some 200 000 symbols; a line is an address, a letter and a name.
    const MOST_LINES: usize = 4_000_000;

    fn read(path: &str) -> Result<Self, Unknown> {
        let file = File::open(path).map_err(|error| why(path, &error))?;
        let mut symbols = Vec::new();
        for line in BufReader::new(file).split(b'\n').take(Self::MOST_LINES) {
            let line = line.map_err(|error| why(path, &error))?;
            symbols.extend(symbol_of(&line));
        }
        Ok(Self(symbols))
    }

    fn address(&self, name: &'static str) -> Result<u64, Unknown> {
        match self.0.iter().find(|(known, _)| *known == name) {
            Some((_, 0)) => Err(Unknown::Refused(format!("{KALLSYMS} shows 0 for {name}"))),
            Some(&(_, address)) => Ok(address),
            None => {
                Err(Unknown::Absent(format!("{KALLSYMS} has no {name}: it comes with CONFIG_KALLSYMS_ALL")))
            }
        }
    }
}

fn symbol_of(line: &[u8]) -> Option<(&'static str, u64)> {
    let (address, _, name) = kernel_symbol(str::from_utf8(line).ok()?)?;
    Some(([IDT, GDT, TSS, OFFSETS].into_iter().find(|known| *known == name)?, address))
}

struct Core {
    file: File,
    segments: Vec<Segment>,
}

impl Core {
    /// More than any machine has; at most one per memory block.
    const MOST_SEGMENTS: usize = 8192;

    fn open(path: &str) -> Result<Self, Unknown> {
        let file = File::open(path).map_err(|error| why(path, &error))?;
        let read = |length: usize, at: u64| {
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, at).map_err(|error| why(path, &error)).map(|()| bytes)
        };
        let malformed = || Unknown::Unreadable(format!("{path} is not a core file of 64 bits"));
        let (at, count) = kcore::table(&read(kcore::HEADER, 0)?).ok_or_else(malformed)?;
        let table = read(count.min(Self::MOST_SEGMENTS) * size_of::<Segment>(), at)?;
        let segments = kcore::entries::<Segment>(&table).to_vec();
        Ok(Self { file, segments })
    }

    fn read(&self, address: u64, size: usize) -> Result<Vec<u8>, Unknown> {
        let holds = |segment: &&Segment| {
            let within = address.checked_sub(segment.p_vaddr.get(LE));
            let end = within.and_then(|at| at.checked_add(size as u64));
            segment.p_type.get(LE) == PT_LOAD && end.is_some_and(|end| end <= segment.p_filesz.get(LE))
        };
        let segment = self.segments.iter().find(holds);
        let segment = segment.ok_or_else(|| Unknown::Absent(format!("{KCORE} has no {address:x}")))?;
        let mut bytes = vec![0; size];
        let at = segment.p_offset.get(LE).wrapping_add(address - segment.p_vaddr.get(LE));
        self.file
            .read_exact_at(&mut bytes, at)
            .map_err(|error| why(&format!("{KCORE} at {address:x}"), &error))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A core file with one segment, which holds `bytes` at `address`.
    fn core(address: u64, bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut header = [0; kcore::HEADER];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[0x20..0x28].copy_from_slice(&64_u64.to_le_bytes());
        header[0x38..0x3a].copy_from_slice(&1_u16.to_le_bytes());
        let mut segment = [0; size_of::<Segment>()];
        segment[0] = 1;
        segment[0x08..0x10].copy_from_slice(&120_u64.to_le_bytes());
        segment[0x10..0x18].copy_from_slice(&address.to_le_bytes());
        segment[0x20..0x28].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[&header[..], &segment[..], bytes].concat()).unwrap();
        file
    }

    #[test]
    fn a_core_file_is_read_by_address() {
        let file = core(0xffff_ffff_8200_0000, b"the IDT");
        let core = Core::open(file.path().to_str().unwrap()).unwrap();
        assert_eq!(core.read(0xffff_ffff_8200_0004, 3).unwrap(), b"IDT");
        assert!(matches!(core.read(0xffff_ffff_8200_0004, 4), Err(Unknown::Absent(_))));
        assert!(matches!(core.read(0x1000, 1), Err(Unknown::Absent(_))));
        assert!(matches!(core.read(u64::MAX, 8), Err(Unknown::Absent(_))));
    }

    #[test]
    fn what_is_no_core_file_says_so() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[b'x'; 200]).unwrap();
        assert!(matches!(Core::open(file.path().to_str().unwrap()), Err(Unknown::Unreadable(_))));
        let mut lying = core(0, b"");
        lying.as_file_mut().write_all_at(&u64::MAX.to_le_bytes(), 0x20).unwrap();
        assert!(Core::open(lying.path().to_str().unwrap()).is_err());
    }

    #[test]
    fn zeros_are_refusal_and_not_addresses() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0000000000000000 D idt_table\nffffffff82a00000 d gdt_page\nnonsense\n\xff\n")
            .unwrap();
        let symbols = Symbols::read(file.path().to_str().unwrap()).unwrap();
        assert!(matches!(symbols.address(IDT), Err(Unknown::Refused(_))));
        assert_eq!(symbols.address(GDT), Ok(0xffff_ffff_82a0_0000));
        assert!(matches!(symbols.address(TSS), Err(Unknown::Absent(_))));
    }

    #[test]
    fn every_register_has_an_answer() {
        for (msr, value) in msrs(0) {
            println!("{}: {value:x?}", msr.name());
            if msr == Msr::Efer
                && let Ok(value) = value
            {
                assert_eq!(value & 0x501, 0x501, "SCE, LME and LMA of a 64-bit kernel");
            }
        }
        println!("{:?}", tables(0).map(|tables| tables.gdt));
    }
}
