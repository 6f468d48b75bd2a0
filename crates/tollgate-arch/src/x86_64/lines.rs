//! Reads of memory, line by line.

use std::arch::asm;

/// Reads `lines` lines of 64 bytes (at least one), eight bytes at a time, like lmbench's bread.
///
/// # Safety
/// The lines are readable.
#[inline(always)]
pub unsafe fn read_lines(from: *const u8, lines: usize) {
    // SAFETY: by the caller's contract.
    unsafe {
        asm!(
            "2:",
            "add {sum}, [{at}]", "add {sum}, [{at} + 8]", "add {sum}, [{at} + 16]", "add {sum}, [{at} + 24]",
            "add {sum}, [{at} + 32]", "add {sum}, [{at} + 40]", "add {sum}, [{at} + 48]",
            "add {sum}, [{at} + 56]",
            "add {at}, 64",
            "dec {lines}",
            "jnz 2b",
            sum = inout(reg) 0_u64 => _,
            at = inout(reg) from => _,
            lines = inout(reg) lines => _,
            options(nostack, readonly),
        );
    }
}
