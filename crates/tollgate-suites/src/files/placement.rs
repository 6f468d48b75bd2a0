//! Where a file system puts new inodes.
//!
//! ext4 puts a new file's inode into its directory's block group, at the first free bit of the group's bitmap. Without a journal it
//! passes over inodes that were deleted 1 to 60 s ago, or up to 6 minutes ago where their table was not written out yet: it
//! looks into the table for each of them, at each creation (`find_inode_bit` and `recently_deleted` in fs/ext4/ialloc.c). After
//! some thousand deletions a creation takes 80 times as long as in a group of its own.

use std::os::fd::OwnedFd;

use rustix::fs::{self, IFlags};

/// Asks ext4 to put each new directory in this one into a block group with few directories (FS_TOPDIR_FL, chattr(1) `T`). Other file
/// systems have no such groups, or choose by themselves. Returns whether it was accepted.
pub(crate) fn spread_directories(directory: &OwnedFd) -> bool {
    let set = |flags: IFlags| fs::ioctl_setflags(directory, flags | IFlags::TOPDIR);
    fs::ioctl_getflags(directory).and_then(set).is_ok()
}

/// The number of a file's inode; None where it cannot be read.
pub(super) fn inode(file: &OwnedFd) -> Option<u64> {
    fs::fstat(file).ok().map(|status| status.st_ino)
}

/// Whether it is a file system with inode tables in block groups: ext2, ext3 or ext4.
pub(super) fn has_groups(directory: &OwnedFd) -> bool {
    const EXT: u32 = 0xef53;
    // The type has 32 bits (include/uapi/linux/magic.h).
    fs::fstatfs(directory).is_ok_and(|status| status.f_type as u32 == EXT)
}
