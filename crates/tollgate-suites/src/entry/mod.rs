//! Kernel entry by every instruction, and related calls: a plain call, the vDSO, and the exit to a hypervisor.

use crate::prelude::*;

mod call;
mod compat_fast;
mod compat_int80;
mod int80;
mod int80_getpid;
mod io_uring_nop;
mod libc_call;
mod rdtsc;
mod results;
pub(crate) mod returns;
mod seccomp;
mod seccomp_notify;
mod short_call;
mod speculation;
mod syscall;
mod syscall_clock;
mod syscall_getpid;
mod user_dispatch;
mod vdso;
mod vdso_clock;
mod vdso_getcpu;
mod vm_exit;

pub(crate) use syscall::CONTROL;

pub(crate) static SUITE: Suite = Suite {
    name: "entry",
    about: "Kernel entry by every instruction, and calls that avoid it.",
    benchmarks: &[
        &call::BENCHMARK,
        &rdtsc::BENCHMARK,
        &vdso_clock::BENCHMARK,
        &vdso_getcpu::BENCHMARK,
        &syscall::BENCHMARK,
        &syscall_getpid::BENCHMARK,
        &syscall_clock::BENCHMARK,
        &short_call::BENCHMARK,
        &libc_call::BENCHMARK,
        &returns::BENCHMARK,
        &seccomp::BENCHMARK,
        &seccomp_notify::BENCHMARK,
        &user_dispatch::BENCHMARK,
        &speculation::BENCHMARK,
        &io_uring_nop::BENCHMARK,
        &int80::BENCHMARK,
        &int80_getpid::BENCHMARK,
        &compat_int80::BENCHMARK,
        &compat_fast::BENCHMARK,
        &vm_exit::BENCHMARK,
    ],
};
