//! A program without a C library; its machine is EM_X86_64 of elf.h.

core::arch::global_asm!(include_str!("../bare.s"), include_str!("bare.s"), machine = const 62);

/// Returns the program's ELF file. The program is linked to a fixed address, and exits at once.
pub fn program() -> &'static [u8] {
    crate::bytes_between!("tollgate_bare_begin", "tollgate_bare_end")
}
