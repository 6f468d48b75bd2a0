use super::syscall;
use crate::prelude::*;

// include/uapi/linux/prctl.h
const PR_SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
const PR_SYS_DISPATCH_ON: libc::c_ulong = 1;

/// SYSCALL_DISPATCH_FILTER_ALLOW: the kernel reads this byte at every entry and allows the call.
static SELECTOR: u8 = 0;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/user-dispatch",
    operation: "The refused call of entry/syscall in a thread with system call user dispatch on and its selector at allow.",
    avoid: "Exclude the code that makes frequent calls by the range of addresses given to prctl.",
    source: "prctl(2), PR_SET_SYSCALL_USER_DISPATCH; Linux Documentation/admin-guide/syscall-user-dispatch.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    baseline: Baseline::Benchmark("entry/syscall"),
    cases: one_case,
    kind: Kind::Instance(|_, _, _| syscall::refused_loop()?.in_thread(switch_on)),
    absence: &[],
    headlines: &[],
    ..syscall::BENCHMARK
};

fn switch_on() -> Result<()> {
    // SAFETY: no address range is exempt; the selector is a static, so it outlives the thread.
    let outcome =
        unsafe { libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &raw const SELECTOR) };
    match outcome {
        0 => Ok(()),
        _ => Err(skip!("system call user dispatch is refused: {}", last_error())),
    }
}
