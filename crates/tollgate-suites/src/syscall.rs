//! System calls without the C library around them, which leave errno alone as a signal handler must.

use std::arch::asm;

/// System call `number` with up to four arguments: what the kernel returns, an error's number less than zero.
///
/// # Safety
/// As the call of this number asks of its arguments.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, [first, second, third, fourth]: [u64; 4]) -> i64 {
    let result: i64;
    // SAFETY: the instruction overwrites rcx and r11 beside its result (Intel SDM volume 2, SYSCALL); the caller answers for
    // the rest.
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

/// sched_yield(2): gives the processor away.
#[inline(always)]
pub(crate) fn sched_yield() {
    // SAFETY: the call takes nothing.
    unsafe { call(libc::SYS_sched_yield, [0; 4]) };
}
