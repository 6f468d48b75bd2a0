//! The frame of the 32-bit program.

core::arch::global_asm!(include_str!("compat.s"));

/// Returns the program without a loop, which is appended.
pub fn frame() -> &'static [u8] {
    crate::bytes_between!("tollgate_compat_begin", "tollgate_compat_end")
}

/// The load address, `.Ltg_base` of `compat.s`.
pub const BASE: u64 = 0x0804_8000;
