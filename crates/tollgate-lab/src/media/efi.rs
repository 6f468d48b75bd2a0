//! An application of UEFI: the loader of `efi.s` with the kernel behind it, as one section of a file in Microsoft's form (PE32+).
//!
//! Source: Microsoft, "PE Format"; UEFI Specification 2.10, 2.1.1.

#![allow(unsafe_code)] // The bytes lie between symbols of the assembled section.

use std::arch::global_asm;

use crate::guest::Image;

global_asm!(include_str!("efi.s"), options(att_syntax, raw));

unsafe extern "C" {
    static tollgate_efi_begin: u8;
    static tollgate_efi_end: u8;
}

/// The headers take a page, and so do the parts of the section.
const PAGE: usize = 4096;
/// Where the loader finds where the kernel is, and how many bytes it has.
const KERNEL: usize = 8;

/// The bytes of the application.
pub(super) fn file(image: &Image) -> Vec<u8> {
    let mut section = loader();
    let place = [section.len() as u32, image.bytes().len() as u32];
    for (to, from) in section.iter_mut().skip(KERNEL).zip(place.iter().flat_map(|word| word.to_le_bytes())) {
        *to = from;
    }
    section.extend(image.bytes());
    section.resize(section.len().next_multiple_of(PAGE), 0);
    let mut file = headers(section.len() as u32);
    file.resize(PAGE, 0);
    file.extend(section);
    file
}

/// The headers of a file with one section, which is entered at its beginning.
fn headers(bytes: u32) -> Vec<u8> {
    const X86_64: u16 = 0x8664;
    /// Executable, knows addresses above 2 GiB. That there are no relocations is not said: it would have to be loaded at address 0.
    const CHARACTERISTICS: u16 = 0x22;
    const PE32_PLUS: u16 = 0x20b;
    const EFI_APPLICATION: u16 = 10;
    const DIRECTORIES: u32 = 16;
    /// Code, to be executed, read and written.
    const SECTION: u32 = 0xe000_0020;
    const AT: u32 = 64;
    let page = PAGE as u32;
    let mut text = b"MZ".to_vec();
    text.resize(60, 0);
    text.extend(AT.to_le_bytes());
    text.extend(b"PE\0\0");
    let add16 =
        |text: &mut Vec<u8>, words: &[u16]| text.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let add32 =
        |text: &mut Vec<u8>, words: &[u32]| text.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    add16(&mut text, &[X86_64, 1]);
    add32(&mut text, &[0, 0, 0]); // no date, no symbols
    add16(&mut text, &[112 + DIRECTORIES as u16 * 8, CHARACTERISTICS]);
    add16(&mut text, &[PE32_PLUS, 0]);
    // Code, data, entry, beginning of the code; the address that it is linked to, of 8 bytes; alignment in memory and in the file.
    add32(&mut text, &[bytes, 0, 0, page, page, 0, 0, page, page]);
    add16(&mut text, &[0, 0, 0, 0, 0, 0]); // versions
    add32(&mut text, &[0, page + bytes, page, 0]); // bytes in memory and of the headers, no checksum
    add16(&mut text, &[EFI_APPLICATION, 0]);
    add32(&mut text, &[0; 8]); // stack and heap are the firmware's
    add32(&mut text, &[0, DIRECTORIES]);
    add32(&mut text, &[0; 2 * DIRECTORIES as usize]);
    text.extend(b".text\0\0\0");
    add32(&mut text, &[bytes, page, bytes, page, 0, 0, 0, SECTION]);
    text
}

/// The loader as it was assembled.
fn loader() -> Vec<u8> {
    let begin = &raw const tollgate_efi_begin;
    let bytes = (&raw const tollgate_efi_end).addr() - begin.addr();
    // SAFETY: both symbols are in one section of this program's read-only data, whose bytes from the one to the other are initialised
    // and never written.
    unsafe { std::slice::from_raw_parts(begin, bytes) }.to_vec()
}
