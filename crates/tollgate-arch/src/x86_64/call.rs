//! System calls by SYSCALL.

use std::arch::asm;

/// Makes system call `number` with up to four arguments. Returns the kernel's result, or a negative error number.
///
/// # Safety
/// The arguments must be valid for this call.
#[inline(always)]
pub unsafe fn call(number: libc::c_long, [first, second, third, fourth]: [u64; 4]) -> i64 {
    let result: i64;
    // SAFETY: the instruction also overwrites rcx and r11 (Intel SDM volume 2, SYSCALL); the caller answers for the rest.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    result
}

/// Like [`call`], with up to six arguments.
///
/// # Safety
/// The arguments must be valid for this call.
#[inline(always)]
pub unsafe fn call6(number: libc::c_long, arguments: [u64; 6]) -> i64 {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let result: i64;
    // SAFETY: as above.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth, in("r9") sixth,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    result
}
