//! Numbers of the kernel's interface.

/// The architecture of a call by a 64-bit program, in seccomp and ptrace (`AUDIT_ARCH_AARCH64` of linux/audit.h).
pub const AUDIT_ARCH: u32 = 0xc000_00b7;
/// The architecture of a call by a 32-bit program (`AUDIT_ARCH_ARM`).
pub const AUDIT_ARCH_32: u32 = 0x4000_0028;
/// No number has a marker bit: arm64 has only one ABI for 64-bit programs.
pub const X32: u32 = 0;

/// arm64 has no x32 ABI.
pub const fn is_x32(_number: u32) -> bool {
    false
}
/// The number of poll(3): ppoll(2), whose third and fourth arguments are the addresses of the time and of a mask of signals.
pub const POLL: libc::c_long = libc::SYS_ppoll;
/// vfork(3) is a clone(2).
pub const VFORK: Option<libc::c_long> = None;

/// The system calls of 64-bit programs, from Linux 6.18 (`scripts/syscall.tbl`): names in the order of their numbers, from 0. A
/// number in the text is the number of the next name.
pub const CALLS: &str = include_str!("aarch64.txt");
/// The system calls of 32-bit programs (`arch/arm/tools/syscall.tbl`).
pub const CALLS_32: &str = include_str!("arm.txt");
