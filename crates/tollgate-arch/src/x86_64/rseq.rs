//! Symbols of rseq(2) in the C library.

/// The library's variables of <sys/rseq.h>, null for a library without them, and this thread's pointer, from which the offset counts.
pub struct Library {
    /// `__rseq_offset`.
    pub offset: *const isize,
    /// `__rseq_size`.
    pub size: *const u32,
    /// The thread's pointer.
    pub thread: usize,
}

/// Asks the linker, which C code does with weak symbols.
pub fn library() -> Library {
    let (offset, size, thread): (*const isize, *const u32, usize);
    // SAFETY: reads two addresses from the linker, 0 for a library without these symbols, and the thread's own pointer
    // (System V ABI for x86-64, thread-local storage).
    unsafe {
        std::arch::asm!(
            ".weak __rseq_offset", ".weak __rseq_size",
            "mov {offset}, [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, [rip + __rseq_size@GOTPCREL]",
            "mov {thread}, fs:0",
            offset = out(reg) offset, size = out(reg) size, thread = out(reg) thread,
            options(nostack, preserves_flags),
        );
    }
    Library { offset, size, thread }
}
