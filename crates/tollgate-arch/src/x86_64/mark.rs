//! Marks around the watched part of a guest whose instructions are counted: instructions without effect, which the translator's plugin
//! recognizes.

use std::arch::asm;

/// The displacement of a mark, `nopl disp32(%rax)`, without the kind in its last byte.
const MARK: i32 = i32::from_le_bytes([b't', b'o', b'l', 0]);
const READY: i32 = MARK | 1 << 24;
const BEGIN: i32 = MARK | 2 << 24;
const END: i32 = MARK | 3 << 24;

/// Writes more bytes to a port of QEMU's `isa-debugcon` than its socket holds: the guest's clock stands still until the plugin reads them.
/// Without ioperm(2), it does nothing.
pub fn pass_gate(port: u16) {
    const MORE_THAN_FIT: u64 = 64;
    // SAFETY: ioperm(2) takes only numbers.
    let allow = |is_allowed: libc::c_int| unsafe { libc::ioperm(port.into(), 1, is_allowed) };
    if allow(1) != 0 {
        return;
    }
    let bytes = [0_u8; MORE_THAN_FIT as usize];
    // SAFETY: the instruction reads these bytes, and the device only passes them on.
    unsafe {
        asm!(
            "rep outsb",
            in("dx") port,
            inout("rcx") MORE_THAN_FIT => _,
            inout("rsi") bytes.as_ptr() => _,
            options(nostack, readonly, preserves_flags)
        );
    }
    // Task switches take longer while a port is allowed.
    allow(0);
}

/// Begins a window. The translator translates everything anew at the end of the first block. No mark crosses a page.
#[inline(never)]
pub fn begin() {
    // SAFETY: the instructions do nothing.
    unsafe {
        asm!(
            ".p2align 5",
            "nop dword ptr [rax + {ready}]",
            "jmp 2f",
            "2: nop dword ptr [rax + {begin}]",
            "jmp 3f",
            "3:",
            ready = const READY,
            begin = const BEGIN,
            options(nostack, nomem, preserves_flags)
        );
    }
}

/// Ends a window.
#[inline(never)]
pub fn end() {
    // SAFETY: the instructions do nothing.
    unsafe {
        asm!(
            ".p2align 5",
            "jmp 2f",
            "2: nop dword ptr [rax + {end}]",
            "jmp 3f",
            "3:",
            end = const END,
            options(nostack, nomem, preserves_flags)
        );
    }
}
