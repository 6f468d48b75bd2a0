//! The first sector: the loader of `boot.s`, with where the kernel is, and the partition table.

#![allow(unsafe_code)] // The bytes lie between symbols of the assembled section.

use std::arch::global_asm;

use super::{SECTOR, VOLUME, fat};
use crate::LabError;

global_asm!(include_str!("boot.s"), options(att_syntax, raw));

unsafe extern "C" {
    static tollgate_boot_begin: [u8; SECTOR];
    #[cfg(test)]
    static tollgate_boot_end: u8;
}

/// Where the loader has the kernel before it leaves real mode, and the first address that may be the BIOS's again.
const LOADED: usize = 0x1_0000;
const LOADED_END: usize = 0x8_0000;

/// Places in the sector, as `boot.s` has them: the first sector of the kernel, how many, how many 16 bytes each has, and how many
/// 4 bytes the kernel has.
const FROM: usize = 0x1a8;
const SECTORS: usize = 0x1b0;
const PARAGRAPHS: usize = 0x1b2;
const WORDS: usize = 0x1b4;
/// The partition table.
const PARTITION: usize = 0x1be;

/// Where the kernel is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel {
    /// Its first sector.
    pub(super) from: u32,
    /// Its bytes.
    pub(super) bytes: usize,
    /// Bytes of a sector, as the BIOS numbers them on this medium.
    pub(super) sector: usize,
}

/// The loader for a kernel there.
///
/// # Errors
/// [`LabError::TooLarge`]
pub(super) fn loader(kernel: Kernel) -> Result<[u8; SECTOR], LabError> {
    let Kernel { from, bytes, sector } = kernel;
    if bytes > LOADED_END - LOADED - sector {
        return Err(too_large(bytes));
    }
    // SAFETY: the symbol is the first byte of a section of this program's read-only data, of 512 bytes, which is never written.
    let mut loader = unsafe { tollgate_boot_begin };
    put(&mut loader, FROM, &from.to_le_bytes());
    put(&mut loader, SECTORS, &(bytes.div_ceil(sector) as u16).to_le_bytes());
    put(&mut loader, PARAGRAPHS, &((sector / 16) as u16).to_le_bytes());
    put(&mut loader, WORDS, &(bytes.div_ceil(4) as u32).to_le_bytes());
    Ok(loader)
}

/// The error of a kernel of so many bytes.
pub(super) fn too_large(bytes: usize) -> LabError {
    LabError::TooLarge { image: bytes, base: LOADED as u64, memory: LOADED_END }
}

/// Adds two partitions: one with the kernel, of no file system (DAh), that is marked as active, for a BIOS may look for one before it takes
/// a stick for a disk; and the volume for UEFI (EFh).
pub(super) fn partitions(loader: &mut [u8; SECTOR]) {
    const ACTIVE: u8 = 0x80;
    const NO_FILE_SYSTEM: u8 = 0xda;
    const EFI_SYSTEM: u8 = 0xef;
    const ENTRY: usize = 16;
    let volume = (VOLUME / SECTOR) as u32;
    put(loader, PARTITION, &partition(ACTIVE, NO_FILE_SYSTEM, 1, volume - 1));
    put(loader, PARTITION + ENTRY, &partition(0, EFI_SYSTEM, volume, fat::SECTORS as u32));
}

/// An entry of the table. Cylinder, head and sector are those of what is only found by its number.
fn partition(mark: u8, kind: u8, from: u32, sectors: u32) -> Vec<u8> {
    let mut entry = vec![mark, 0xfe, 0xff, 0xff, kind, 0xfe, 0xff, 0xff];
    entry.extend(from.to_le_bytes());
    entry.extend(sectors.to_le_bytes());
    entry
}

fn put(sector: &mut [u8; SECTOR], at: usize, bytes: &[u8]) {
    for (to, from) in sector.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

/// How many bytes were assembled.
#[cfg(test)]
pub(super) fn assembled() -> usize {
    (&raw const tollgate_boot_end).addr() - (&raw const tollgate_boot_begin).addr()
}
