//! Numbers of the kernel's interface.

/// The architecture of a call by a 64-bit program, in seccomp and ptrace (`AUDIT_ARCH_X86_64` of linux/audit.h).
pub const AUDIT_ARCH: u32 = 0xc000_003e;
/// The architecture of a call by a 32-bit program (`AUDIT_ARCH_I386`).
pub const AUDIT_ARCH_32: u32 = 0x4000_0003;
/// Set in the number of a call by a program of the x32 ABI (`__X32_SYSCALL_BIT` of asm/unistd.h).
pub const X32: u32 = 0x4000_0000;

/// Whether a number belongs to the x32 ABI.
pub const fn is_x32(number: u32) -> bool {
    number & X32 != 0
}
/// The number of poll(3): poll(2), whose third argument is the time in milliseconds.
pub const POLL: libc::c_long = libc::SYS_poll;
/// The number of vfork(2).
pub const VFORK: Option<libc::c_long> = Some(libc::SYS_vfork);

/// The system calls of 64-bit programs, from Linux 6.18 (`arch/x86/entry/syscalls/syscall_64.tbl`): names in the order of their
/// numbers, from 0. A number in the text is the number of the next name. Only x32 has 512 to 547.
pub const CALLS: &str = include_str!("x86_64.txt");
/// The system calls of 32-bit programs (`syscall_32.tbl`).
pub const CALLS_32: &str = include_str!("i386.txt");
