//! Memory that a process shares with its children.

use std::ptr::{self, NonNull};
use std::{io, ops::Deref, sync::atomic::AtomicU64};

use rustix::mm::{MapFlags, ProtFlags};

/// `N` words, initially zero. A child made by fork(2) shares them.
#[derive(Debug)]
pub struct Shared<const N: usize>(NonNull<[AtomicU64; N]>);

// SAFETY: the words are accessed only by atomic operations, and their one owner unmaps them.
unsafe impl<const N: usize> Send for Shared<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Shared<N> {}

impl<const N: usize> Shared<N> {
    /// Maps new shared memory.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), size_of::<[AtomicU64; N]>(), access, MapFlags::SHARED)
        }?;
        NonNull::new(memory.cast()).map(Self).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }
}

impl<const N: usize> Deref for Shared<N> {
    type Target = [AtomicU64; N];

    fn deref(&self) -> &[AtomicU64; N] {
        // SAFETY: mapped as long as this lives, zeroed, aligned to a page and large enough.
        unsafe { self.0.as_ref() }
    }
}

impl<const N: usize> Drop for Shared<N> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.0.as_ptr().cast(), size_of::<[AtomicU64; N]>()) };
    }
}
