//! The breakpoint.

use tollgate_model::Boundary::{Exception, KernelCode, KernelEntry, Signal, UserCopy};

use tollgate_engine::benchmark::{Benchmark, PLAIN};
use tollgate_engine::timed::timed_loop;
use tollgate_engine::{Loop, Timed, TimedLoop};

use super::handler::{self, Handled, handler, tried};

timed_loop! {
    /// #BP is a trap: the interrupted address is already behind it.
    breakpoint: "int3"
}

handler! {
    /// Continues after it.
    resume:
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/breakpoint",
    operation: "One INT3 (#BP) and the SIGTRAP handler that counts it and returns.",
    crosses: &[KernelEntry, Exception, KernelCode, Signal, UserCopy],
    timed: |_| Timed::once("int3", TimedLoop::Long(breakpoint)),
    counts: Some("signals"),
    instance: |benchmark, params| {
        let timed = (benchmark.timed)(params);
        // SAFETY: the loop needs nothing from its context.
        let timed_loop = unsafe { Loop::new(timed, [0; 7], None, handler::any) }?;
        let handled = Handled::new(libc::SIGTRAP, resume, timed);
        Ok(tried(timed_loop.with_hooks(handled), 1, "int3")?.here())
    },
    absence: handler::absence,
    ..PLAIN
};
