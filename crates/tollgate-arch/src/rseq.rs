//! The C library's variables of rseq(2).

pub use crate::chosen::rseq::{SIGNATURE, library};

/// The library's variables of <sys/rseq.h>, null for a library without them, and this thread's pointer, from which the offset counts.
pub struct Library {
    /// `__rseq_offset`.
    pub offset: *const isize,
    /// `__rseq_size`.
    pub size: *const u32,
    /// The thread's pointer.
    pub thread: usize,
}

impl Library {
    /// Returns the address of this thread's area. A library has none that does not know rseq(2), or whose registration was refused or
    /// disabled (GLIBC_TUNABLES=glibc.pthread.rseq=0).
    #[inline(always)]
    pub fn area(&self) -> Option<usize> {
        if self.offset.is_null() || self.size.is_null() {
            return None;
        }
        // SAFETY: the library defines both with these types (<sys/rseq.h>) and never changes them once a program runs.
        let (offset, size) = unsafe { (*self.offset, *self.size) };
        (size > 0).then(|| self.thread.wrapping_add_signed(offset))
    }
}
