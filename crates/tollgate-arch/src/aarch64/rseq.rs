//! Symbols of rseq(2) in the C library.

pub use crate::rseq::Library;

/// The signature before each abort handler: BRK with a number of its own (RSEQ_SIG_CODE of the kernel's selftests and of glibc).
pub const SIGNATURE: u32 = 0xd428_bc00;

/// Asks the linker for the symbols, as C code does with weak symbols.
#[inline(always)]
pub fn library() -> Library {
    let (offset, size, thread): (*const isize, *const u32, usize);
    // SAFETY: reads two addresses from the linker, 0 for a library without these symbols, and the thread's own pointer
    // (TPIDR_EL0; ELF for the Arm 64-bit architecture, thread-local storage).
    unsafe {
        std::arch::asm!(
            ".weak __rseq_offset", ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            "mrs {thread}, tpidr_el0",
            offset = out(reg) offset, size = out(reg) size, thread = out(reg) thread,
            options(nostack, preserves_flags),
        );
    }
    Library { offset, size, thread }
}
