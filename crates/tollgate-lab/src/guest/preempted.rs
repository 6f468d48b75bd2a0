#![allow(unsafe_code)] // The bytes lie between symbols of the assembled section.

#[cfg(target_arch = "x86_64")]
use std::arch::global_asm;

#[cfg(target_arch = "x86_64")]
global_asm!(include_str!("preempted.s"), options(att_syntax, raw));

unsafe extern "C" {
    static tollgate_preempted_begin: u8;
    static tollgate_preempted_end: u8;
    static tollgate_preempted_parts: u8;
    static tollgate_preempted_parts_end: u8;
}

pub(crate) fn code() -> &'static [u8] {
    between(&raw const tollgate_preempted_begin, &raw const tollgate_preempted_end)
}

/// Returns the address of a part, by its index in the list of `preempted.s`.
pub(crate) fn part(place: usize) -> Option<u64> {
    let list = between(&raw const tollgate_preempted_parts, &raw const tollgate_preempted_parts_end);
    list.chunks_exact(4).nth(place)?.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes)))
}

fn between(from: *const u8, to: *const u8) -> &'static [u8] {
    // SAFETY: both are symbols of one section, which is read-only and lives as long as the program; `from` comes first.
    unsafe { std::slice::from_raw_parts(from, to.offset_from_unsigned(from)) }
}
