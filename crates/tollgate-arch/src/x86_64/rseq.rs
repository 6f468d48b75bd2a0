//! Symbols of rseq(2) in the C library.

pub use crate::rseq::Library;

/// The signature before each abort handler (glibc's RSEQ_SIG).
pub const SIGNATURE: u32 = 0x5305_3053;

/// Asks the linker for the symbols, as C code does with weak symbols.
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
