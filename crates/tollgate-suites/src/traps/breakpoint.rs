//! The breakpoint.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed, TimedLoop, timed_loop};
use tollgate_model::Boundary::{Exception, KernelCode, KernelEntry, Signal, UserCopy};

use super::handler::{self, Handled, counted, handler};

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
    kind: Kind::Instance(|timed, _, _| {
        counted(timed, handler::any, Handled::new(libc::SIGTRAP, resume, timed), "int3")
    }),
    absence: handler::absence,
    ..PLAIN
};
