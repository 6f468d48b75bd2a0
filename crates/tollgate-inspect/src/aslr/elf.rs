//! The kind of a program's ELF file, as far as it decides where the kernel loads it: elf(5), the generic ABI and
//! `load_elf_binary` in fs/binfmt_elf.c. The file is not trusted, so all reads are bounded.

use std::{fs::File, os::unix::fs::FileExt};

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{BigEndian, LittleEndian as LE, pod};
use tollgate_arch::abi;
use tollgate_arch::architecture::HERE;

use crate::kcore::entries;

/// Properties of an ELF file that decide where the kernel loads it, and how it is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elf {
    /// Kind of the file.
    pub kind: ElfKind,
    /// A program for the 32-bit instruction set (`EM_386`, `EM_ARM`).
    pub is_32_bit: bool,
    /// The dynamic loader that it names (`PT_INTERP`).
    pub interpreter: Option<String>,
    /// Whether its dynamic section marks it as a position-independent executable (`DF_1_PIE`).
    pub says_pie: bool,
    /// Whether all symbols are bound before it begins (`DT_BIND_NOW`, `DF_BIND_NOW`, `DF_1_NOW`).
    pub binds_now: bool,
    /// Whether a part of it is made read-only after relocation (`PT_GNU_RELRO`).
    pub relro: bool,
    /// Whether it asks for an executable stack (`PT_GNU_STACK`). If it does not say, the architecture decides.
    pub executable_stack: Option<bool>,
    /// Largest alignment of its loadable segments in bytes. Since Linux 5.10, what exceeds a page reduces the entropy.
    pub alignment: u64,
}

/// The kind of an ELF file, which decides where it is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElfKind {
    /// Position independent, with a dynamic loader.
    Pie,
    /// Position independent, without a loader: it relocates itself.
    StaticPie,
    /// Linked to a fixed address, with a loader or without.
    Fixed,
    /// A library that can be started, such as the C library or the loader itself.
    SharedObject,
}

impl ElfKind {
    /// Stable name for documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pie => "pie",
            Self::StaticPie => "static_pie",
            Self::Fixed => "fixed",
            Self::SharedObject => "shared_object",
        }
    }
}

/// Why a file is not a program that can be examined, as a predicate after its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotElf {
    /// Begins with `#!`.
    #[error("is a script; its interpreter is laid out in memory: look at {:?} instead", tollgate_model::text::excerpt(.0))]
    Script(String),
    /// No magic number.
    #[error("is neither an ELF file nor a script")]
    Other,
    /// For another architecture.
    #[error("is a program for another processor (ELF machine {0}); this one runs {runs}", runs = HERE.spelling(RUNS))]
    Machine(u16),
    /// 32-bit pointers on the 64-bit machine.
    #[error("is a program for the {abi} ABI, which is not supported", abi = HERE.spelling(SHORT))]
    X32,
    /// `ET_REL`, `ET_CORE` and others.
    #[error("is an ELF file of type {0}, not a program (2) or a shared object (3)")]
    Type(u16),
    /// Its headers are contradictory.
    #[error("is an ELF file whose headers are wrong: {0}")]
    Lies(String),
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

/// The ELF machines of this architecture's programs, 64-bit and 32-bit: the low half of linux/audit.h's numbers.
pub(crate) const MACHINES: [u16; 2] = [abi::AUDIT_ARCH as u16, abi::AUDIT_ARCH_32 as u16];
const RUNS: &str = "x86-64 (62) and i386 (3)/arm64 (183) and 32-bit Arm (40)";
const SHORT: &str = "x32/ILP32";

/// More program headers than any real file has; the kernel accepts at most 64 KiB of them.
const MOST_HEADERS: u16 = 1170;
/// The longest name of an interpreter that the kernel accepts (`PATH_MAX`).
const LONGEST_NAME: u64 = 4096;
/// A dynamic section has some dozens of entries of 16 bytes.
const LONGEST_DYNAMIC: u64 = 1 << 16;

pub(crate) trait Bytes {
    fn at(&self, offset: u64, length: u64) -> Result<Vec<u8>, NotElf>;
}

impl Bytes for File {
    fn at(&self, offset: u64, length: u64) -> Result<Vec<u8>, NotElf> {
        let mut bytes = vec![0; length as usize];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_at(rest, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // An offset that no file can have is beyond the end of this one.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(NotElf::Unreadable(tollgate_model::text::plainly(&error))),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

impl Bytes for &[u8] {
    fn at(&self, offset: u64, length: u64) -> Result<Vec<u8>, NotElf> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
        Ok(rest[..length].to_vec())
    }
}

/// Parses a file. Fails if it is not a program or its headers are contradictory.
pub(crate) fn read(file: &impl Bytes) -> Result<Elf, NotElf> {
    let start = file.at(0, 256)?;
    if let Some(line) = start.strip_prefix(b"#!") {
        return Err(NotElf::Script(interpreter_of_script(line)));
    }
    if !start.starts_with(&elf::ELFMAG) {
        return Err(NotElf::Other);
    }
    // Both classes have the identification and the machine at the same offsets.
    let short: &FileHeader32<LE> = header(&start)?;
    let ident = short.e_ident;
    let machine = match ident.data {
        elf::ELFDATA2LSB => short.e_machine(LE),
        elf::ELFDATA2MSB => {
            let machine = header::<FileHeader32<BigEndian>>(&start)?.e_machine(BigEndian);
            return Err(NotElf::Machine(machine.0));
        }
        order => return Err(lies(format!("its byte order is {}, not 1 (little-endian)", order.0))),
    };
    match (MACHINES.map(|ours| ours == machine.0), ident.class) {
        ([true, _], elf::ELFCLASS64) => describe::<FileHeader64<LE>>(file, &start),
        ([_, true], elf::ELFCLASS32) => describe::<FileHeader32<LE>>(file, &start),
        ([true, _], elf::ELFCLASS32) => Err(NotElf::X32),
        ([false, false], _) => Err(NotElf::Machine(machine.0)),
        (_, class) => Err(lies(format!("machine {} with class {}", machine.0, class.0))),
    }
}

fn header<H: FileHeader>(start: &[u8]) -> Result<&H, NotElf> {
    pod::from_bytes(start).map(|(header, _)| header).map_err(|()| cut())
}

fn describe<H: FileHeader<Endian = LE>>(file: &impl Bytes, start: &[u8]) -> Result<Elf, NotElf> {
    let header: &H = header(start)?;
    let file_type = header.e_type(LE);
    if file_type != elf::ET_EXEC && file_type != elf::ET_DYN {
        return Err(NotElf::Type(file_type.0));
    }
    let table = program_headers(file, header)?;
    let segments: &[H::ProgramHeader] = entries(&table);
    let of = |kind: elf::ProgramType| segments.iter().filter(move |segment| segment.p_type(LE) == kind);
    if of(elf::PT_LOAD).next().is_none() {
        return Err(lies("it has nothing to load".to_owned()));
    }
    let alignments = of(elf::PT_LOAD).map(|load| load.p_align(LE).into());
    let alignment = alignments.filter(|align: &u64| align.is_power_of_two()).max();
    let range = |segment: &H::ProgramHeader| segment.file_range(LE);
    let interpreter = of(elf::PT_INTERP).next().map(|segment| name_at(file, range(segment))).transpose()?;
    let flags = match of(elf::PT_DYNAMIC).next().map(range) {
        Some((offset, size)) => flags_of(entries::<H::Dyn>(&file.at(offset, size.min(LONGEST_DYNAMIC))?)),
        None => Flags::default(),
    };
    let kind = match (file_type, interpreter.is_some(), flags.pie) {
        (elf::ET_EXEC, ..) => ElfKind::Fixed,
        // Linkers before binutils 2.26 did not set the flag: a library with a loader of its own is the rarer case.
        (_, true, true) => ElfKind::Pie,
        (_, true, false) if flags.is_library => ElfKind::SharedObject,
        (_, true, false) => ElfKind::Pie,
        (_, false, true) => ElfKind::StaticPie,
        (_, false, false) => ElfKind::SharedObject,
    };
    let stack = of(elf::PT_GNU_STACK).next();
    Ok(Elf {
        kind,
        is_32_bit: !header.is_type_64(),
        interpreter,
        says_pie: flags.pie,
        binds_now: flags.now,
        relro: of(elf::PT_GNU_RELRO).next().is_some(),
        executable_stack: stack.map(|stack| stack.p_flags(LE).0 & elf::PF_X.0 != 0),
        alignment: alignment.unwrap_or(1),
    })
}

fn program_headers<H: FileHeader<Endian = LE>>(file: &impl Bytes, header: &H) -> Result<Vec<u8>, NotElf> {
    let (size, count) = (header.e_phentsize(LE), header.e_phnum(LE));
    let due = size_of::<H::ProgramHeader>();
    if usize::from(size) != due {
        return Err(lies(format!("its program headers have {size} bytes, not {due}")));
    }
    if !(1..=MOST_HEADERS).contains(&count) {
        return Err(lies(format!("it has {count} program headers; from 1 to {MOST_HEADERS} are possible")));
    }
    let length = u64::from(count) * u64::from(size);
    let table = file.at(header.e_phoff(LE).into(), length)?;
    if table.len() as u64 != length {
        return Err(lies(format!("its {count} program headers lie beyond its end")));
    }
    Ok(table)
}

fn lies(what: String) -> NotElf {
    NotElf::Lies(what)
}

fn cut() -> NotElf {
    lies("it ends within its header".to_owned())
}

fn interpreter_of_script(line: &[u8]) -> String {
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(line);
    text.split_whitespace().next().unwrap_or_default().to_owned()
}

fn name_at(file: &impl Bytes, (offset, size): (u64, u64)) -> Result<String, NotElf> {
    if !(2..=LONGEST_NAME).contains(&size) {
        return Err(lies(format!("the name of its loader has {size} bytes")));
    }
    let bytes = file.at(offset, size)?;
    match bytes.strip_suffix(b"\0") {
        Some(name) if bytes.len() as u64 == size => Ok(String::from_utf8_lossy(name).into_owned()),
        _ => Err(lies("the name of its loader does not end".to_owned())),
    }
}

#[derive(Default)]
struct Flags {
    pie: bool,
    now: bool,
    /// It has a name by which others link to it (`DT_SONAME`).
    is_library: bool,
}

fn flags_of<D: Dyn<Endian = LE>>(entries: &[D]) -> Flags {
    let mut flags = Flags::default();
    for entry in entries {
        match (entry.tag(LE), entry.val(LE)) {
            (elf::DT_NULL, _) => break,
            (elf::DT_BIND_NOW, _) => flags.now = true,
            (elf::DT_SONAME, _) => flags.is_library = true,
            (elf::DT_FLAGS, value) => flags.now |= value & elf::DF_BIND_NOW.0 != 0,
            (elf::DT_FLAGS_1, value) => {
                flags.now |= value & elf::DF_1_NOW.0 != 0;
                flags.pie |= value & elf::DF_1_PIE.0 != 0;
            }
            _ => {}
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ET_EXEC: u16 = elf::ET_EXEC.0;
    const ET_DYN: u16 = elf::ET_DYN.0;
    const PT_LOAD: u32 = elf::PT_LOAD.0;
    const PT_DYNAMIC: u32 = elf::PT_DYNAMIC.0;
    const PT_INTERP: u32 = elf::PT_INTERP.0;
    const PT_GNU_STACK: u32 = elf::PT_GNU_STACK.0;

    /// A 64-bit ELF file with these segments: kind, flags, offset, size, alignment.
    fn file(kind: u16, segments: &[(u32, u32, u64, u64, u64)], rest: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend(kind.to_le_bytes());
        bytes.extend(MACHINES[0].to_le_bytes());
        bytes.resize(32, 0);
        bytes.extend(64u64.to_le_bytes());
        bytes.resize(54, 0);
        bytes.extend(56u16.to_le_bytes());
        bytes.extend((segments.len() as u16).to_le_bytes());
        bytes.resize(64, 0);
        for &(kind, flags, offset, size, alignment) in segments {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(flags.to_le_bytes());
            for value in [offset, 0, 0, size, size, alignment] {
                bytes.extend(value.to_le_bytes());
            }
        }
        bytes.extend(rest);
        bytes
    }

    const LOAD: (u32, u32, u64, u64, u64) = (PT_LOAD, 5, 0, 64, 4096);

    #[test]
    fn kinds() {
        let dynamic: Vec<u8> = [elf::DT_FLAGS_1.0 as u64, elf::DF_1_PIE.0 | elf::DF_1_NOW.0, 0, 0]
            .map(u64::to_le_bytes)
            .concat();
        let two = 64 + 2 * 56;
        let three = 64 + 3 * 56;
        let of = |bytes: Vec<u8>| read(&bytes.as_slice()).unwrap();
        assert_eq!(of(file(ET_EXEC, &[LOAD], b"")).kind, ElfKind::Fixed);
        assert_eq!(of(file(ET_DYN, &[LOAD], b"")).kind, ElfKind::SharedObject);
        let static_pie = of(file(ET_DYN, &[LOAD, (PT_DYNAMIC, 6, two, 32, 8)], &dynamic));
        assert!(static_pie.kind == ElfKind::StaticPie && static_pie.binds_now && static_pie.says_pie);
        let mut rest = dynamic;
        rest.extend(b"/ld.so\0");
        let pie = of(file(
            ET_DYN,
            &[(PT_LOAD, 5, 0, 64, 1 << 21), (PT_DYNAMIC, 6, three, 32, 8), (PT_INTERP, 4, three + 32, 7, 1)],
            &rest,
        ));
        assert_eq!(
            (pie.kind, pie.interpreter.as_deref(), pie.alignment),
            (ElfKind::Pie, Some("/ld.so"), 1 << 21)
        );
        assert_eq!((pie.relro, pie.executable_stack, pie.is_32_bit), (false, None, false));
    }

    #[test]
    fn what_is_no_program_says_what_it_is() {
        let why = |bytes: &[u8]| read(&bytes).unwrap_err().to_string();
        assert!(why(b"#! /usr/bin/env python3\n").contains("\"/usr/bin/env\""));
        assert!(why(b"#!").contains("script"));
        assert_eq!(why(b""), "is neither an ELF file nor a script");
        assert!(why(b"\x7fELF").contains("ends within its header"));
        assert!(why(&file(1, &[LOAD], b"")).contains("type 1"));
        assert!(why(&file(4, &[LOAD], b"")).contains("type 4"));
        let mut risc_v = file(ET_DYN, &[LOAD], b"");
        risc_v[18] = 243;
        assert!(why(&risc_v).contains("machine 243"));
        let mut sparc = file(ET_DYN, &[LOAD], b"");
        (sparc[5], sparc[18], sparc[19]) = (2, 0, 43);
        assert!(why(&sparc).contains("machine 43"));
        let mut x32 = file(ET_DYN, &[LOAD], b"");
        x32[4] = 1;
        assert!(why(&x32).contains(HERE.spelling(SHORT)));
    }

    #[test]
    fn headers_that_lie_are_named() {
        let why = |bytes: &[u8]| read(&bytes).unwrap_err().to_string();
        assert!(why(&file(ET_DYN, &[], b"")).contains("0 program headers"));
        assert!(why(&file(ET_DYN, &[(PT_GNU_STACK, 7, 0, 0, 16)], b"")).contains("nothing to load"));
        let mut beyond = file(ET_DYN, &[LOAD], b"");
        beyond[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(why(&beyond).contains("beyond its end"));
        let mut many = file(ET_DYN, &[LOAD], b"");
        many[56..58].copy_from_slice(&u16::MAX.to_le_bytes());
        assert!(why(&many).contains("65535 program headers"));
        for interpreter in
            [(PT_INTERP, 4, 0, u64::MAX, 1), (PT_INTERP, 4, u64::MAX, 9, 1), (PT_INTERP, 4, 0, 7, 1)]
        {
            assert!(why(&file(ET_DYN, &[LOAD, interpreter], b"")).contains("name of its loader"));
        }
        let wild = (PT_DYNAMIC, 4, u64::MAX - 3, u64::MAX, 3);
        assert_eq!(read(&file(ET_DYN, &[LOAD, wild], b"").as_slice()).unwrap().kind, ElfKind::SharedObject);
    }

    #[test]
    fn this_test_is_a_program() {
        let Ok(own) = File::open("/proc/self/exe") else {
            println!("skipped: there is no /proc to find this program in");
            return;
        };
        let elf = read(&own).unwrap();
        assert!(
            matches!(elf.kind, ElfKind::StaticPie | ElfKind::Pie | ElfKind::Fixed) && !elf.is_32_bit,
            "{elf:?}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0u16..5, at in 0usize..300, byte in any::<u8>()) {
            let _ = read(&bytes.as_slice());
            let mut near = file(kind, &[LOAD, (PT_DYNAMIC, 4, 80, 64, 8), (PT_INTERP, 4, 90, 9, 1)], &bytes);
            let _ = read(&near.as_slice());
            let at = at % near.len();
            near[at] = byte;
            let _ = read(&near.as_slice());
            near.truncate(at);
            let _ = read(&near.as_slice());
        }
    }
}
