use crate::prelude::*;

timed_loop! {
    /// Word 1: the clock; words 2 and 3 receive the time.
    clock_gettime: called call SYS_clock_gettime([8], (16))
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/syscall-clock",
    operation: "One clock_gettime(CLOCK_MONOTONIC) by a system call: the cost when the vDSO falls back.",
    avoid: "Call clock_gettime through the C library, which uses the vDSO, and keep a clock source that it can read.",
    source: "vdso(7); clock_gettime(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, ClockSource, UserCopy],
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(clock_gettime)),
    kind: Kind::Instance(|timed, _, _| {
        let words = [0, libc::CLOCK_MONOTONIC as u64, 0, 0, 0, 0, 0];
        // SAFETY: the call writes 16 bytes to words 2 and 3.
        Ok(unsafe { Loop::new(timed, words, None, checks::zero) }?.here())
    }),
    ..PLAIN
};
