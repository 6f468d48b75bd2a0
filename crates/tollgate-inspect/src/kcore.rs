//! The beginning of `/proc/kcore`, an ELF core file of the running kernel: fs/proc/kcore.c. Pure.

use object::elf::{self, FileHeader64, NoteHeader64, ProgramHeader64};
use object::{LittleEndian as LE, pod};

const NAME: &[u8] = b"VMCOREINFO\0";
/// The direct map of all memory is in the upper half, below the kernel image and vmalloc.
const UPPER_HALF: u64 = 1 << 63;
const IMAGE: u64 = 0xffff_ffff_8000_0000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Core {
    /// `KERNELOFFSET` in the note VMCOREINFO (Documentation/admin-guide/kdump/vmcoreinfo.rst).
    pub offset: Option<u64>,
    /// The start of the direct map: a memory segment's virtual address less its physical one.
    pub direct_map: Option<u64>,
}

pub(crate) type Segment = ProgramHeader64<LE>;

pub(crate) const HEADER: usize = size_of::<FileHeader64<LE>>();

/// Offset and number of the program headers. `None` if it is not a 64-bit ELF file.
pub(crate) fn table(start: &[u8]) -> Option<(u64, usize)> {
    let (header, _) = pod::from_bytes::<FileHeader64<LE>>(start).ok()?;
    let ident = header.e_ident;
    let is_known =
        ident.magic == elf::ELFMAG && (ident.class, ident.data) == (elf::ELFCLASS64, elf::ELFDATA2LSB);
    is_known.then_some((header.e_phoff.get(LE), header.e_phnum.get(LE).into()))
}

/// The entries of a table in an ELF file, without an incomplete last one.
pub(crate) fn entries<T: pod::Pod>(bytes: &[u8]) -> &[T] {
    pod::slice_from_bytes(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(entries, _)| entries)
}

/// `None` if it is not a 64-bit ELF file.
pub(crate) fn parse(bytes: &[u8]) -> Option<Core> {
    let (at, count) = table(bytes)?;
    // A buffer that ends within the table still has its beginning.
    let segments: &[Segment] = entries(bytes.get(usize::try_from(at).ok()?..)?);
    let segments = &segments[..count.min(segments.len())];
    let mut core = Core::default();
    for segment in segments {
        match segment.p_type.get(LE) {
            elf::PT_NOTE => {
                let (offset, size) = (segment.p_offset.get(LE), segment.p_filesz.get(LE));
                let notes =
                    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
                let size = usize::try_from(size).unwrap_or(usize::MAX).min(notes.len());
                core.offset = core.offset.or_else(|| kernel_offset(vmcoreinfo(&notes[..size])?));
            }
            elf::PT_LOAD => {
                let (virtual_address, physical) = (segment.p_vaddr.get(LE), segment.p_paddr.get(LE));
                // Segments that are not memory have a physical address of 0 or -1.
                let is_memory =
                    virtual_address & UPPER_HALF != 0 && virtual_address < IMAGE && physical != u64::MAX;
                let base =
                    virtual_address.checked_sub(physical).filter(|base| is_memory && base % (1 << 30) == 0);
                core.direct_map = core.direct_map.into_iter().chain(base.filter(|_| physical != 0)).min();
            }
            _ => {}
        }
    }
    Some(core)
}

fn vmcoreinfo(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (header, rest) = pod::from_bytes::<NoteHeader64<LE>>(notes).ok()?;
        let (name_size, size) = (header.n_namesz.get(LE) as usize, header.n_descsz.get(LE) as usize);
        let padded = |size: usize| size.checked_next_multiple_of(4);
        let name = rest.get(..name_size)?;
        let description = padded(name_size)?;
        let end = description.checked_add(size)?;
        if name.strip_suffix(b"\0") == NAME.strip_suffix(b"\0") {
            return rest.get(description..end.min(rest.len()));
        }
        notes = rest.get(description.checked_add(padded(size)?)?..)?;
    }
}

/// The line `KERNELOFFSET=1e000000`, in hexadecimal.
fn kernel_offset(text: &[u8]) -> Option<u64> {
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"KERNELOFFSET="))?;
    u64::from_str_radix(std::str::from_utf8(line).ok()?.trim(), 16).ok()
}

/// Makes a core file with only what [`parse`] finds. The other notes contain a task's record, and more.
pub(crate) fn abridged(bytes: &[u8]) -> Vec<u8> {
    let Some(core) = parse(bytes) else { return Vec::new() };
    let mut notes = Vec::new();
    if let Some(offset) = core.offset {
        notes = note(NAME, &format!("KERNELOFFSET={offset:x}\n"));
    }
    // Without a physical address nothing is concluded, so the first page is enough.
    let piece = core.direct_map.and_then(|base| Some((base.checked_add(0x1000)?, 0x1000)));
    file(&notes, piece.as_slice())
}

fn note(name: &[u8], text: &str) -> Vec<u8> {
    let mut note: Vec<u8> =
        [name.len() as u32, text.len() as u32, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    for part in [name, text.as_bytes()] {
        note.extend(part);
        note.resize(note.len().next_multiple_of(4), 0);
    }
    note
}

/// Makes a core file with notes and memory segments, given as virtual and physical addresses.
fn file(notes: &[u8], pieces: &[(u64, u64)]) -> Vec<u8> {
    let count = 1 + pieces.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(32, 0);
    bytes.extend(64u64.to_le_bytes());
    bytes.resize(56, 0);
    bytes.extend((count as u16).to_le_bytes());
    bytes.resize(64, 0);
    let headers = [(elf::PT_NOTE, 0, 0)]
        .into_iter()
        .chain(pieces.iter().map(|&(at, physical)| (elf::PT_LOAD, at, physical)));
    for (kind, virtual_address, physical) in headers {
        bytes.extend(kind.0.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        for value in [64 + count * 56, virtual_address, physical, notes.len() as u64, 0, 0] {
            bytes.extend(u64::to_le_bytes(value));
        }
    }
    bytes.extend(notes);
    bytes
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A core file with this offset in its note, and memory at this address in the direct map.
    pub fn core(offset: &str, direct_map: u64) -> Vec<u8> {
        let description = format!("OSRELEASE=6.1.0\nKERNELOFFSET={offset}\nLENGTH(x)=1\n");
        let notes = [note(b"CORE\0", "abc"), note(NAME, &description)].concat();
        let image = IMAGE + 0x100_0000;
        let pieces = [(image, 0x100_0000), (direct_map + 0x1000, 0x1000)];
        file(&notes, &pieces)
    }

    #[test]
    fn of_a_core_file_no_more_than_the_two_addresses_is_kept() {
        let whole = core("1e000000", 0xffff_8c00_0000_0000);
        let kept = abridged(&whole);
        assert_eq!(parse(&kept), parse(&whole));
        assert!(!kept.windows(3).any(|window| window == b"abc"), "a note that must not be captured");
        assert_eq!(abridged(&kept), kept);
        assert!(abridged(b"anything else").is_empty());
    }

    #[test]
    fn a_core_file() {
        let core = parse(&core("1e000000", 0xffff_8c00_0000_0000)).unwrap();
        assert_eq!(core, Core { offset: Some(0x1e00_0000), direct_map: Some(0xffff_8c00_0000_0000) });
        assert_eq!(parse(b"\x7fELF\x01\x01"), None);
        assert_eq!(parse(b""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in any::<Vec<u8>>(), at in 0usize..400, byte in any::<u8>(), end in 0usize..400) {
            let _ = parse(&bytes);
            let mut near = core("0", 0xffff_8880_0000_0000);
            let last = near.len() - 1;
            near[at.min(last)] = byte;
            let _ = parse(&near);
            near.truncate(end);
            let _ = parse(&near);
        }
    }
}
