//! Reads of memory, line by line.

use std::arch::asm;

/// Reads `lines` pieces of 64 bytes (at least one), eight bytes at a time, like lmbench's bread.
///
/// # Safety
/// The pieces are readable.
#[inline(always)]
pub unsafe fn read_lines(from: *const u8, lines: usize) {
    // SAFETY: by the caller's contract.
    unsafe {
        asm!(
            "2:",
            "ldr {a}, [{at}]", "add {sum}, {sum}, {a}", "ldr {b}, [{at}, 8]", "add {sum}, {sum}, {b}",
            "ldr {a}, [{at}, 16]", "add {sum}, {sum}, {a}", "ldr {b}, [{at}, 24]", "add {sum}, {sum}, {b}",
            "ldr {a}, [{at}, 32]", "add {sum}, {sum}, {a}", "ldr {b}, [{at}, 40]", "add {sum}, {sum}, {b}",
            "ldr {a}, [{at}, 48]", "add {sum}, {sum}, {a}", "ldr {b}, [{at}, 56]", "add {sum}, {sum}, {b}",
            "add {at}, {at}, 64",
            "subs {lines}, {lines}, 1",
            "b.ne 2b",
            sum = inout(reg) 0_u64 => _,
            at = inout(reg) from => _,
            lines = inout(reg) lines => _,
            a = out(reg) _, b = out(reg) _,
            options(nostack, readonly),
        );
    }
}
