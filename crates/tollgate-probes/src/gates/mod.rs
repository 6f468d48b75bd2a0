//! What it costs to enter the kernel, by every way there is, and what lies around: the call that
//! enters nothing, the vDSO that avoids entering, the exit to a hypervisor.

use crate::probe::{Means, Suite};

mod call;
mod compat_fast;
mod compat_int80;
mod int80;
mod int80_getpid;
mod io_uring_nop;
mod rdtsc;
mod results;
mod seccomp;
mod speculation;
mod syscall;
mod syscall_clock;
mod syscall_getpid;
mod user_dispatch;
mod vdso;
mod vdso_clock;
mod vdso_getcpu;
mod vm_exit;

/// The gates.
pub(crate) static SUITE: Suite = Suite {
    name: "gates",
    about: "Entering the kernel by every way there is, and avoiding to.",
    probes: &[
        &call::PROBE,
        &rdtsc::PROBE,
        &vdso_clock::PROBE,
        &vdso_getcpu::PROBE,
        &syscall::PROBE,
        &syscall_getpid::PROBE,
        &syscall_clock::PROBE,
        &seccomp::PROBE,
        &user_dispatch::PROBE,
        &speculation::PROBE,
        &io_uring_nop::PROBE,
        &int80::PROBE,
        &int80_getpid::PROBE,
        &compat_int80::PROBE,
        &compat_fast::PROBE,
        &vm_exit::PROBE,
        #[cfg(feature = "test-hooks")]
        &syscall::EQUAL,
    ],
    twin: Some(&syscall::TWIN),
    means: Means::Rounds,
};
