//! System calls by SVC.

use std::arch::asm;

/// Makes system call `number` with up to four arguments. Returns the kernel's result, or a negative error number.
///
/// # Safety
/// The arguments must be valid for this call.
#[inline(always)]
pub unsafe fn call(number: libc::c_long, [first, second, third, fourth]: [u64; 4]) -> i64 {
    let result: i64;
    // SAFETY: the kernel changes no register but x0 (arch/arm64/kernel/entry.S); the caller answers for the rest.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second, in("x2") third, in("x3") fourth,
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
            "svc 0",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second, in("x2") third, in("x3") fourth, in("x4") fifth, in("x5") sixth,
            options(nostack),
        );
    }
    result
}
