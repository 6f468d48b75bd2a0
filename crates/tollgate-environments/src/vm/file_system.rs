//! File systems: their modules, and the packages of the programs that make them.

use super::modules::{Has, Modules};

/// The checksum module that file systems request from the kernel by name (crypto/crc32c_generic.c).
const CRC32C: &str = "crc32c_generic";

/// Chooses the module of a file system, after that of its checksums. An error is a clause: the kernel does not have it.
pub(super) fn choose(file_system: &str, modules: &mut Modules) -> Result<(), String> {
    // ext4 is a driver for all three (fs/ext4/super.c).
    let drivers: &[&str] = match file_system {
        "ext2" => &["ext2", "ext4"],
        "ext3" => &["ext4"],
        other => &[other],
    };
    if modules.has(CRC32C) == Has::Module {
        modules.choose(CRC32C)?;
    }
    match drivers.iter().find(|driver| modules.has(driver) != Has::No) {
        Some(driver) => modules.choose(driver),
        None => Err(format!("it has no file system {file_system}")),
    }
}

pub(super) fn package(file_system: &str) -> &'static str {
    match file_system {
        "xfs" => "xfsprogs",
        "btrfs" => "btrfs-progs",
        "f2fs" => "f2fs-tools",
        _ => "e2fsprogs",
    }
}
