//! Memory that a process shares with others.

use std::ptr::{self, NonNull};
use std::{fs::File, io, ops::Deref, sync::atomic::AtomicU64};

use rustix::mm::{MapFlags, ProtFlags};

/// `N` words. A child made by fork(2) shares them.
#[derive(Debug)]
pub struct Shared<const N: usize>(NonNull<[AtomicU64; N]>);

// SAFETY: the words are accessed only by atomic operations, and their one owner unmaps them.
unsafe impl<const N: usize> Send for Shared<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Shared<N> {}

impl<const N: usize> Shared<N> {
    const SIZE: usize = size_of::<[AtomicU64; N]>();
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Maps new shared memory, which is zero.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new() -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), Self::SIZE, Self::ACCESS, MapFlags::SHARED)
        }?;
        NonNull::new(memory.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Maps a file in memory, whose size must be that of the words and never shrink.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn of(file: &File) -> io::Result<Self> {
        // SAFETY: as above.
        let memory = unsafe {
            rustix::mm::mmap(ptr::null_mut(), Self::SIZE, Self::ACCESS, MapFlags::SHARED, file, 0)
        }?;
        NonNull::new(memory.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl<const N: usize> Deref for Shared<N> {
    type Target = [AtomicU64; N];

    fn deref(&self) -> &[AtomicU64; N] {
        // SAFETY: mapped as long as this lives, aligned to a page and large enough.
        unsafe { self.0.as_ref() }
    }
}

impl<const N: usize> Drop for Shared<N> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), Self::SIZE) };
    }
}
