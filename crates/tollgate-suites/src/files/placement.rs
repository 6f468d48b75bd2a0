//! Placement of new inodes by a file system.
//!
//! ext4 puts a new file's inode into its directory's block group, at the first free bit of the group's bitmap. Without a journal
//! it passes over inodes that were deleted 1 to 60 s ago, or up to 6 minutes ago if their table has not been written out. It
//! looks up each of them in the table at each creation (`find_inode_bit` and `recently_deleted` in fs/ext4/ialloc.c). After some
//! thousand deletions a creation takes 80 times as long as in its own group.

use std::os::fd::OwnedFd;

use rustix::fs::{self, IFlags};

/// Asks ext4 to put each new directory in this one into a block group with few directories (FS_TOPDIR_FL, chattr(1) `T`). Other
/// file systems have no such groups, or choose by themselves. Returns whether the flag was accepted.
pub(crate) fn spread_directories(directory: &OwnedFd) -> bool {
    let set = |flags: IFlags| fs::ioctl_setflags(directory, flags | IFlags::TOPDIR);
    fs::ioctl_getflags(directory).and_then(set).is_ok()
}

pub(super) fn inode(file: &OwnedFd) -> Option<u64> {
    fs::fstat(file).ok().map(|status| status.st_ino)
}

/// Returns whether the file system has inode tables in block groups: ext2, ext3 or ext4.
pub(super) fn has_groups(directory: &OwnedFd) -> bool {
    const EXT: u32 = 0xef53;
    // Magic numbers have 32 bits (include/uapi/linux/magic.h).
    fs::fstatfs(directory).is_ok_and(|status| status.f_type as u32 == EXT)
}
