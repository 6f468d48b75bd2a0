//! Reads statically linked ELF files: the segments and the entry. Every number of the file is checked.
//!
//! Source: elf(5); System V ABI, "Object files" and "Program loading".

#[cfg(test)]
mod tests;

use super::{ADDRESSES, MAX_MEMORY, Program, Rights, Segment};

const MOST_HEADERS: usize = 64;
const PAGE: u64 = 4096;

const CLASS_32: u8 = 1;
const CLASS_64: u8 = 2;
const LITTLE: u8 = 1;
const MACHINE_386: u16 = 3;
const MACHINE_X86_64: u16 = 62;
const RELOCATABLE: u16 = 1;
const EXECUTABLE: u16 = 2;
const SHARED: u16 = 3;
const LOAD: u32 = 1;
const INTERPRETER: u32 = 3;
const TLS: u32 = 7;

/// A part that is missing from a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The ELF header.
    Header,
    /// The program headers.
    Headers,
    /// The bytes of the segment at this address.
    Segment(u64),
}

/// Why an ELF file is not run; the text follows the file's name in a sentence.
#[expect(missing_docs, reason = "the message says what the fields are")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    #[error("{}", gap(*.0))]
    Cut(Gap),
    #[error(
        "is an ELF file of class {class} and byte order {order}; a program of x86 has class 1 or 2 and order 1"
    )]
    Class { class: u8, order: u8 },
    #[error(
        "is a program for another processor (ELF machine {0}); the lab's is x86-64 (62) or, of class 1, i386 (3)"
    )]
    Machine(u16),
    #[error("is an object file and not yet a program; link it: ld -Ttext-segment=0x40000000 -o PROGRAM FILE")]
    Object,
    #[error(
        "is position independent (PIE or a library), and nothing relocates it here; link it with -static -no-pie \
         -Wl,-Ttext-segment=0x40000000"
    )]
    Pie,
    #[error("is an ELF file of type {0}, not a program (2)")]
    Type(u16),
    #[error("names a dynamic loader, which the lab does not have; link it with -static -no-pie")]
    Dynamic,
    #[error("has thread-local storage, which the lab's kernel does not set up: build it without")]
    ThreadLocal,
    #[error("has no segment to load")]
    Empty,
    #[error("has {0} program headers; the limit is {MOST_HEADERS}")]
    Headers(usize),
    #[error("has {file} bytes in the file for {memory} bytes of memory at {address:x}")]
    Sizes { address: u64, file: u64, memory: u64 },
    #[error(
        "has a segment at {from:x}..{to:x}, and programs live between {:x} and {:x}: link it with \
         -Wl,-Ttext-segment=0x40000000", ADDRESSES.start, ADDRESSES.end
    )]
    Outside { from: u64, to: u64 },
    #[error(
        "has two segments in the page at {0:x}, whose rights cannot differ: link it with -Wl,-z,separate-code"
    )]
    Overlap(u64),
    #[error("takes {0} bytes of memory; the limit is {MAX_MEMORY}")]
    TooLarge(u64),
    #[error("begins at {0:x}, where it has no executable code; name its first symbol with -Wl,-e,NAME")]
    Entry(u64),
}

fn gap(gap: Gap) -> String {
    match gap {
        Gap::Header => "ends within its ELF header".to_owned(),
        Gap::Headers => "ends within its program headers".to_owned(),
        Gap::Segment(at) => format!("ends within its segment at {at:x}"),
    }
}

pub(super) fn is_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

pub(super) fn read(name: &str, file: &[u8]) -> Result<Program, ElfError> {
    let file = File::parse(file)?;
    let mut segments = Vec::new();
    for header in file.headers()? {
        match header.kind {
            LOAD if header.memory > 0 => segments.push(file.segment(&header)?),
            INTERPRETER => return Err(ElfError::Dynamic),
            TLS if header.memory > 0 => return Err(ElfError::ThreadLocal),
            _ => {}
        }
    }
    segments.sort_by_key(|segment| segment.address);
    let entry = file.entry()?;
    expect_apart(&segments)?;
    if !segments.iter().any(|segment| segment.rights.execute && segment.holds(entry)) {
        return Err(ElfError::Entry(entry));
    }
    Ok(Program { is_32_bit: !file.is_64_bit, ..Program::new(name, entry, segments) })
}

/// Returns a symbol's value in a 64-bit file; `None` if it has no such symbol, or no symbol table.
pub(super) fn symbol(file: &[u8], name: &str) -> Option<u64> {
    const TABLE: u32 = 2;
    const UNDEFINED: u16 = 0;
    let file = File::parse(file).ok().filter(|file| file.is_64_bit)?;
    let (table, size, number) = (file.address(40)?, file.half(58)?, file.half(60)?);
    let place = |at: u16| usize::try_from(table).ok()?.checked_add(usize::from(at) * usize::from(size));
    // sh_offset, sh_size
    let contents = |section: usize| {
        let field = |at: usize| usize::try_from(file.address(section.checked_add(at)?)?).ok();
        let from = field(24)?;
        file.bytes.get(from..from.checked_add(field(32)?)?)
    };
    let is_table = |section: &usize| file.word(section.saturating_add(4)) == Some(TABLE);
    let symbols = (0..number).filter_map(place).find(is_table)?;
    let names = contents(place(u16::try_from(file.word(symbols.checked_add(40)?)?).ok()?)?)?;
    contents(symbols)?.chunks_exact(24).find_map(|symbol| {
        let at = u32::from_le_bytes(*symbol.first_chunk()?) as usize;
        let rest = names.get(at..)?.strip_prefix(name.as_bytes())?;
        let is_defined = *symbol.get(6..)?.first_chunk::<2>()? != UNDEFINED.to_le_bytes();
        let value = u64::from_le_bytes(*symbol.get(8..)?.first_chunk()?);
        (rest.first() == Some(&0) && is_defined).then_some(value)
    })
}

/// Checks that segments share no page and are not too large together.
fn expect_apart(segments: &[Segment]) -> Result<(), ElfError> {
    if segments.is_empty() {
        return Err(ElfError::Empty);
    }
    let last_page = |segment: &Segment| (segment.address + segment.size - 1) / PAGE;
    for pair in segments.windows(2) {
        if last_page(&pair[0]) >= pair[1].address / PAGE {
            return Err(ElfError::Overlap(pair[1].address / PAGE * PAGE));
        }
    }
    let memory = segments.iter().map(|segment| segment.size).sum();
    if memory > MAX_MEMORY { Err(ElfError::TooLarge(memory)) } else { Ok(()) }
}

struct File<'a> {
    bytes: &'a [u8],
    is_64_bit: bool,
}

struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file: u64,
    memory: u64,
}

impl<'a> File<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        let &[_, _, _, _, class, order, ..] = bytes else { return Err(ElfError::Cut(Gap::Header)) };
        if !matches!(class, CLASS_32 | CLASS_64) || order != LITTLE {
            return Err(ElfError::Class { class, order });
        }
        let file = Self { bytes, is_64_bit: class == CLASS_64 };
        let machine = file.half(18).ok_or(ElfError::Cut(Gap::Header))?;
        if machine != if file.is_64_bit { MACHINE_X86_64 } else { MACHINE_386 } {
            return Err(ElfError::Machine(machine));
        }
        match file.half(16).ok_or(ElfError::Cut(Gap::Header))? {
            EXECUTABLE => Ok(file),
            RELOCATABLE => Err(ElfError::Object),
            SHARED => Err(ElfError::Pie),
            other => Err(ElfError::Type(other)),
        }
    }

    fn entry(&self) -> Result<u64, ElfError> {
        self.address(24).ok_or(ElfError::Cut(Gap::Header))
    }

    fn headers(&self) -> Result<Vec<Header>, ElfError> {
        // e_phoff, e_phentsize, e_phnum
        let [table, size, number] = if self.is_64_bit { [32, 54, 56] } else { [28, 42, 44] };
        let fields = || Some((self.address(table)?, self.half(size)?, self.half(number)?));
        let (table, size, number) = fields().ok_or(ElfError::Cut(Gap::Header))?;
        let number = usize::from(number);
        if number > MOST_HEADERS {
            return Err(ElfError::Headers(number));
        }
        let place = |at: usize| usize::try_from(table).ok()?.checked_add(at * usize::from(size));
        let header = |at| place(at).and_then(|at| self.header(at)).ok_or(ElfError::Cut(Gap::Headers));
        (0..number).map(header).collect()
    }

    fn header(&self, at: usize) -> Option<Header> {
        // p_type, p_flags, p_offset, p_vaddr, p_filesz, p_memsz
        let [kind, flags, offset, address, file, memory] =
            if self.is_64_bit { [0, 4, 8, 16, 32, 40] } else { [0, 24, 4, 8, 16, 20] };
        let place = |field: usize| at.checked_add(field);
        Some(Header {
            kind: self.word(place(kind)?)?,
            flags: self.word(place(flags)?)?,
            offset: self.address(place(offset)?)?,
            address: self.address(place(address)?)?,
            file: self.address(place(file)?)?,
            memory: self.address(place(memory)?)?,
        })
    }

    fn segment(&self, header: &Header) -> Result<Segment, ElfError> {
        let Header { flags, offset, address, file, memory, .. } = *header;
        let end = address.saturating_add(memory);
        if address < ADDRESSES.start || end > ADDRESSES.end {
            return Err(ElfError::Outside { from: address, to: end });
        }
        if memory > MAX_MEMORY {
            return Err(ElfError::TooLarge(memory));
        }
        if file > memory {
            return Err(ElfError::Sizes { address, file, memory });
        }
        let bytes = || {
            let from = usize::try_from(offset).ok()?;
            self.bytes.get(from..from.checked_add(usize::try_from(file).ok()?)?)
        };
        let bytes = bytes().ok_or(ElfError::Cut(Gap::Segment(address)))?.to_vec();
        let rights = Rights { execute: flags & 1 != 0, write: flags & 2 != 0, read: flags & 4 != 0 };
        Ok(Segment { address, size: memory, bytes, rights })
    }

    fn half(&self, at: usize) -> Option<u16> {
        self.bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// Reads an address or an offset: 8 bytes, or 4 in a 32-bit file.
    fn address(&self, at: usize) -> Option<u64> {
        if !self.is_64_bit {
            return self.word(at).map(u64::from);
        }
        self.bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }
}
