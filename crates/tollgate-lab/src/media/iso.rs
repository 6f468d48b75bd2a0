//! A CD: ISO 9660 (ECMA-119) with a boot catalog (the "El Torito" specification 1.0), and in its first sector, which a CD leaves to the
//! system, what boots it as a disk. There are no dates in it: the same image is the same file.

use super::sector::{self, Kernel};
use super::{SECTOR as DISK_SECTOR, VOLUME, efi, fat};
use crate::LabError;
use crate::guest::Image;

/// Bytes of a sector of a CD.
const SECTOR: usize = 2048;

// Where things are, in sectors. Volume descriptors begin at 16 (ECMA-119 6.2.1).
const BOOT_RECORD: usize = 17;
const LAST: usize = 18;
const PATHS: usize = 19;
const PATHS_HIGH_FIRST: usize = 20;
const ROOT: usize = 21;
const CATALOG: usize = 22;
const LOADER: usize = 23;
const KERNEL: usize = 24;

/// Bytes of the table of paths, which has the root alone.
const PATH: u32 = 10;

/// The bytes of the CD.
///
/// # Errors
/// [`LabError::TooLarge`]
pub(super) fn file(image: &Image) -> Result<Vec<u8>, LabError> {
    let kernel = image.bytes();
    let bytes = kernel.len();
    let on_disk = (KERNEL * (SECTOR / DISK_SECTOR)) as u32;
    let mut first = sector::loader(Kernel { from: on_disk, bytes, sector: DISK_SECTOR })?;
    sector::partitions(&mut first);
    let loader = sector::loader(Kernel { from: KERNEL as u32, bytes, sector: SECTOR })?;

    let volume = fat::volume(&efi::file(image)).ok_or_else(|| sector::too_large(bytes))?;
    let length = VOLUME + volume.len();

    let mut cd = first.to_vec();
    let mut add = |at: usize, what: &[u8]| {
        cd.resize(at * SECTOR, 0);
        cd.extend(what);
    };
    add(16, &primary((length / SECTOR) as u32));
    add(BOOT_RECORD, &boot_record());
    add(LAST, b"\xffCD001\x01");
    add(PATHS, &path(u32::to_le_bytes, u16::to_le_bytes));
    add(PATHS_HIGH_FIRST, &path(u32::to_be_bytes, u16::to_be_bytes));
    add(ROOT, &root(bytes));
    add(CATALOG, &catalog());
    add(LOADER, &loader);
    add(KERNEL, kernel);
    add(VOLUME / SECTOR, &volume);
    Ok(cd)
}

/// The primary volume descriptor (ECMA-119 8.4), of a volume of so many sectors.
fn primary(sectors: u32) -> Vec<u8> {
    let mut text = Vec::with_capacity(SECTOR);
    text.extend(b"\x01CD001\x01\0");
    text.extend(padded("", 32)); // system
    text.extend(padded("TOLLGATE_LAB", 32)); // volume
    text.extend([0; 8]);
    text.extend(both32(sectors));
    text.extend([0; 32]);
    text.extend(both16(1)); // volumes of the set,
    text.extend(both16(1)); // which of them this is,
    text.extend(both16(SECTOR as u16)); // and bytes of a block
    text.extend(both32(PATH));
    text.extend((PATHS as u32).to_le_bytes());
    text.extend([0; 4]);
    text.extend((PATHS_HIGH_FIRST as u32).to_be_bytes());
    text.extend([0; 4]);
    text.extend(entry(b"\0", ROOT, SECTOR, true));
    // Volume set, publisher, preparer and application; copyright, abstract and bibliographic file.
    text.extend(padded("", 128));
    text.extend(padded("", 128));
    text.extend(padded("", 128));
    text.extend(padded("TOLLGATE", 128));
    text.extend(padded("", 37 * 3));
    // Created, modified, expires, effective: not specified (8.4.26.1).
    for _ in 0..4 {
        text.extend([b'0'; 16]);
        text.push(0);
    }
    text.push(1); // of the file structure
    text
}

/// Where the boot catalog is ("El Torito", figure 7).
fn boot_record() -> Vec<u8> {
    let mut text = b"\0CD001\x01EL TORITO SPECIFICATION".to_vec();
    text.resize(0x47, 0);
    text.extend((CATALOG as u32).to_le_bytes());
    text
}

/// The catalog: the validation entry, the one of the loader, which is no diskette ("no emulation"), and a section with the volume for
/// UEFI (UEFI Specification 2.10, 13.3.2.1).
fn catalog() -> Vec<u8> {
    const BOOTABLE: u8 = 0x88;
    /// Sectors of 512 bytes: one of the CD, for the loader reads the rest.
    const LOADED: u16 = 4;
    const LAST_SECTION: u8 = 0x91;
    const UEFI: u8 = 0xef;
    let mut text = vec![1, 0, 0, 0]; // for 80x86
    text.extend(b"tollgate");
    text.resize(0x1c, 0);
    text.extend([0, 0, 0x55, 0xaa]);
    // All words of the entry add up to 0.
    let sum = text.as_chunks().0.iter().fold(0_u16, |sum, word| sum.wrapping_add(u16::from_le_bytes(*word)));
    text.splice(0x1c..0x1e, sum.wrapping_neg().to_le_bytes());
    text.extend([BOOTABLE, 0, 0, 0, 0, 0]); // to 07C0h:0
    text.extend(LOADED.to_le_bytes());
    text.extend((LOADER as u32).to_le_bytes());
    text.resize(64, 0);
    text.extend([LAST_SECTION, UEFI, 1, 0]); // with one entry
    text.resize(96, 0);
    text.extend([BOOTABLE, 0, 0, 0, 0, 0]);
    text.extend((fat::SECTORS as u16).to_le_bytes());
    text.extend(((VOLUME / SECTOR) as u32).to_le_bytes());
    text
}

/// A table of paths with the root (ECMA-119 9.4).
fn path(long: fn(u32) -> [u8; 4], short: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let mut text = vec![1, 0];
    text.extend(long(ROOT as u32));
    text.extend(short(1));
    text.extend([0, 0]);
    text
}

/// The root: itself, its parent, which is itself, and its files by their names.
fn root(kernel: usize) -> Vec<u8> {
    let entries = [
        entry(b"\0", ROOT, SECTOR, true),
        entry(b"\x01", ROOT, SECTOR, true),
        entry(b"BOOT.CAT;1", CATALOG, SECTOR, false),
        entry(b"LAB.BIN;1", KERNEL, kernel, false),
        entry(b"LOADER.BIN;1", LOADER, DISK_SECTOR, false),
    ];
    entries.concat()
}

/// An entry of a directory (ECMA-119 9.1).
fn entry(name: &[u8], sector: usize, bytes: usize, is_directory: bool) -> Vec<u8> {
    const BEFORE_NAME: usize = 33;
    let length = (BEFORE_NAME + name.len()).next_multiple_of(2);
    let mut text = vec![length as u8, 0];
    text.extend(both32(sector as u32));
    text.extend(both32(bytes as u32));
    text.extend([0; 7]); // no date
    text.extend([u8::from(is_directory) << 1, 0, 0]);
    text.extend(both16(1));
    text.push(name.len() as u8);
    text.extend(name);
    text.resize(length, 0);
    text
}

/// A number with its lowest byte first, and then with its highest.
fn both32(number: u32) -> [u8; 8] {
    let mut both = [0; 8];
    both[..4].copy_from_slice(&number.to_le_bytes());
    both[4..].copy_from_slice(&number.to_be_bytes());
    both
}

fn both16(number: u16) -> [u8; 4] {
    let [low, high] = number.to_le_bytes();
    [low, high, high, low]
}

fn padded(text: &str, length: usize) -> Vec<u8> {
    format!("{text:<length$}").into_bytes()
}
