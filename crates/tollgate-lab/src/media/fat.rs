//! A volume that UEFI boots: FAT12 with one file, `\EFI\BOOT\BOOTX64.EFI`.
//!
//! Source: Microsoft, "FAT: General Overview of On-Disk Format" 1.03; UEFI Specification 2.10, 3.5 and 13.3. There are no dates in it.

use super::SECTOR;

/// Sectors of the volume; a cluster is one of them.
pub(super) const SECTORS: usize = 1024;
/// Sectors of each of the two tables: 12 bits a cluster.
const TABLE: usize = 3;
/// Entries of the root, of 32 bytes.
const ROOT: usize = 64;
const ENTRY: usize = 32;
/// The first cluster, which has number 2, is in this sector.
const DATA: usize = 1 + 2 * TABLE + ROOT * ENTRY / SECTOR;
/// The end of a chain of clusters.
const LAST: u16 = 0xfff;
const DIRECTORY: u8 = 0x10;

/// The bytes of the volume; none where the file is too large for it.
pub(super) fn volume(file: &[u8]) -> Option<Vec<u8>> {
    const EFI: u16 = 2;
    const BOOT: u16 = 3;
    const FILE: u16 = 4;
    let clusters = file.len().div_ceil(SECTOR);
    if clusters == 0 || DATA + 2 + clusters > SECTORS {
        return None;
    }
    // The two directories have a cluster each, the file all behind them.
    let mut table = vec![0xff8, LAST, LAST, LAST];
    table.extend((1..clusters).map(|next| FILE + next as u16));
    table.push(LAST);
    let table = packed(&table);

    let mut volume = parameters();
    let mut add = |sector: usize, what: &[u8]| {
        volume.resize(sector * SECTOR, 0);
        volume.extend(what);
    };
    add(1, &table);
    add(1 + TABLE, &table);
    add(1 + 2 * TABLE, &entry(b"EFI        ", DIRECTORY, EFI, 0));
    add(DATA, &directory(EFI, 0, &entry(b"BOOT       ", DIRECTORY, BOOT, 0)));
    add(DATA + 1, &directory(BOOT, EFI, &entry(b"BOOTX64 EFI", 0, FILE, file.len() as u32)));
    add(DATA + 2, file);
    volume.resize(SECTORS * SECTOR, 0);
    Some(volume)
}

/// The first sector, which says how the volume is divided.
fn parameters() -> Vec<u8> {
    let mut text = vec![0xeb, 0x3c, 0x90];
    text.extend(b"tollgate");
    text.extend((SECTOR as u16).to_le_bytes());
    text.push(1); // sectors of a cluster
    text.extend(1_u16.to_le_bytes()); // sectors before the tables
    text.push(2); // tables
    text.extend((ROOT as u16).to_le_bytes());
    text.extend((SECTORS as u16).to_le_bytes());
    text.push(0xf8); // a disk
    text.extend((TABLE as u16).to_le_bytes());
    // Sectors of a track and heads; sectors before the volume, and of it where they are too many for 16 bits.
    text.extend([32, 0, 2, 0]);
    text.extend([0; 8]);
    text.extend([0x80, 0, 0x29]);
    text.extend(*b"tglb"); // the volume's number
    text.extend(b"TOLLGATE   FAT12   ");
    text.resize(SECTOR - 2, 0);
    text.extend([0x55, 0xaa]);
    text
}

/// Two clusters in three bytes each.
fn packed(table: &[u16]) -> Vec<u8> {
    let pair = |pair: &[u16]| {
        let [first, second] = [0, 1].map(|at| pair.get(at).copied().unwrap_or(0));
        [first as u8, (first >> 8) as u8 | (second << 4) as u8, (second >> 4) as u8]
    };
    table.chunks(2).flat_map(pair).collect()
}

/// A directory: itself, the one above, and one entry.
fn directory(own: u16, above: u16, what: &[u8]) -> Vec<u8> {
    [&entry(b".          ", DIRECTORY, own, 0), &entry(b"..         ", DIRECTORY, above, 0), what].concat()
}

fn entry(name: &[u8; 11], attributes: u8, cluster: u16, bytes: u32) -> Vec<u8> {
    let mut text = name.to_vec();
    text.push(attributes);
    text.resize(26, 0);
    text.extend(cluster.to_le_bytes());
    text.extend(bytes.to_le_bytes());
    text
}
