//! The first sector: the loader of `boot.s`, with where the kernel is, and a table of one partition.

#![allow(unsafe_code)] // The bytes lie between symbols of the assembled section.

use std::arch::global_asm;

use super::SECTOR;
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
/// The first of the four entries of the partition table.
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
    let too_large = LabError::TooLarge { image: bytes, base: LOADED as u64, memory: LOADED_END };
    if bytes > LOADED_END - LOADED - sector {
        return Err(too_large);
    }
    // SAFETY: the symbol is the first byte of a section of this program's read-only data, of 512 bytes, which is never written.
    let mut loader = unsafe { tollgate_boot_begin };
    put(&mut loader, FROM, &from.to_le_bytes());
    put(&mut loader, SECTORS, &(bytes.div_ceil(sector) as u16).to_le_bytes());
    put(&mut loader, PARAGRAPHS, &((sector / 16) as u16).to_le_bytes());
    put(&mut loader, WORDS, &(bytes.div_ceil(4) as u32).to_le_bytes());
    Ok(loader)
}

/// Adds a partition that is marked as active, from the second sector to the end: a BIOS may look for one before it takes a stick for a
/// disk. Its type, DAh, is that of no file system.
pub(super) fn partition(loader: &mut [u8; SECTOR], sectors: u32) {
    const ACTIVE: u8 = 0x80;
    const NO_FILE_SYSTEM: u8 = 0xda;
    /// Cylinder, head and sector of what is only found by its number.
    const NUMBERED: [u8; 3] = [0xfe, 0xff, 0xff];
    let mut entry = vec![ACTIVE, 0, 2, 0, NO_FILE_SYSTEM];
    entry.extend(NUMBERED);
    entry.extend(1_u32.to_le_bytes());
    entry.extend(sectors.saturating_sub(1).to_le_bytes());
    put(loader, PARTITION, &entry);
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
