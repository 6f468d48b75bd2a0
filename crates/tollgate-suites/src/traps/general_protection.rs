//! The privileged instruction.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed, TimedLoop, timed_loop};
use tollgate_model::Boundary::{Exception, KernelCode, KernelEntry, Signal, UserCopy};

use super::handler::{self, Handled, counted, handler};

timed_loop! {
    /// HLT is privileged.
    halt: "hlt"
}

handler! {
    /// Steps over it (one byte).
    step_over: "add rax, 1", "mov [rdx + {rip}], rax"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/general-protection",
    operation: "One HLT outside the kernel (#GP) and the SIGSEGV handler that counts it and steps over it.",
    crosses: &[KernelEntry, Exception, KernelCode, Signal, UserCopy],
    timed: |_| Timed::once("hlt", TimedLoop::Long(halt)),
    counts: Some("signals"),
    kind: Kind::Instance(|timed, _, _| counted(timed, handler::any, handled(timed), "hlt")),
    absence: handler::absence,
    ..PLAIN
};

/// The handler for this loop.
pub(super) fn handled(timed: Timed) -> Handled {
    Handled::new(libc::SIGSEGV, step_over, timed)
}
