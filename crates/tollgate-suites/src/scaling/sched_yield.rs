//! A yield of the processor when no other thread wants it.

use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/yield",
    operation: "sched_yield by each thread or process, with nothing else to run on its processor.",
    avoid: "Wait by futex for what another thread has to do.",
    source: "sched_yield(2); will-it-scale, sched_yield.c; kernel/sched/syscalls.c",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    timed: |_| Timed::Whole("sched_yield(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    // SAFETY: the call takes nothing.
    calls(|| unsafe { call(libc::SYS_sched_yield, [0; 4]) })
}
