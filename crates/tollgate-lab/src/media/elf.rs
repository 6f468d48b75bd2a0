//! An ELF file of 32 bits with one segment (System V ABI, "Object files"), for loaders and debuggers that know no other form.

use crate::guest::{BASE, Image};

/// The segment begins at a page of the file; the header of multiboot is then within its first 8192 bytes.
const BEGIN: usize = 4096;
/// Bytes of the two headers.
const HEADER: u16 = 52;
const SEGMENT: u16 = 32;
/// Where in the image's header of multiboot the end of the memory stands that it uses.
const MEMORY_END: usize = 24;

pub(super) fn file(image: &Image) -> Vec<u8> {
    const EXECUTABLE: u16 = 2;
    const I386: u16 = 3;
    const LOAD: u32 = 1;
    const ALL_RIGHTS: u32 = 7;
    let base = BASE as u32;
    let bytes = image.bytes().len() as u32;
    let end = image.bytes().get(MEMORY_END..).and_then(|rest| rest.first_chunk());
    let memory = end.map_or(bytes, |end| u32::from_le_bytes(*end).saturating_sub(base).max(bytes));
    // Of 32 bits, lowest byte first, version 1.
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([EXECUTABLE, I386].iter().flat_map(|field| field.to_le_bytes()));
    // Version, entry, the segments' and sections' headers, flags.
    let words = [1, image.entry() as u32, HEADER.into(), 0, 0];
    file.extend(words.iter().flat_map(|field: &u32| field.to_le_bytes()));
    file.extend([HEADER, SEGMENT, 1, 0, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
    let segment = [LOAD, BEGIN as u32, base, base, bytes, memory, ALL_RIGHTS, BEGIN as u32];
    file.extend(segment.iter().flat_map(|field| field.to_le_bytes()));
    file.resize(BEGIN, 0);
    file.extend(image.bytes());
    file
}
