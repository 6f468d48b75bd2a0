//! The instructions of the program without a C library; its machine is EM_X86_64 of elf.h.

core::arch::global_asm!(include_str!("../bare.s"), include_str!("bare.s"), machine = const 62);
