use super::vdso;
use crate::prelude::*;

timed_loop! {
    /// Word 0: the function; word 1: the clock; words 2 and 3 receive the time.
    clock_gettime: "mov rdi, [r13 + 8]", "lea rsi, [r13 + 16]", "call [r13]";
    aarch64 "ldr x0, [x20, #8]", "add x1, x20, #16", "ldr x9, [x20]", "blr x9"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/vdso-clock",
    operation: "One clock_gettime(CLOCK_MONOTONIC) through the vDSO, which enters the kernel only as a fallback.",
    avoid: "Use a clock source that the vDSO reads (tsc, kvm-clock); CLOCK_MONOTONIC_COARSE suffices where milliseconds do.",
    source: "vdso(7); clock_gettime(2)",
    crosses: &[VdsoClock, ClockSource, TimeStampCounter],
    timed: |_| Timed::once("call/blr", TimedLoop::Long(clock_gettime)),
    headlines: &[Headline::of(Section::Entry, "clock_gettime, vDSO", &[])],
    kind: Kind::Instance(|timed, _, _| {
        let function = vdso::find(&[c"__vdso_clock_gettime", c"clock_gettime", c"__kernel_clock_gettime"])?;
        let words = [function, libc::CLOCK_MONOTONIC as u64, 0, 0, 0, 0, 0];
        // SAFETY: the vDSO stays mapped; the function writes 16 bytes to words 2 and 3.
        Ok(unsafe { Loop::new(timed, words, None, checks::zero) }?.here())
    }),
    ..PLAIN
};
