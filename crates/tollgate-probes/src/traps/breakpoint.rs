//! The breakpoint.

use tollgate_model::Boundary::{Exception, KernelCode, KernelEntry, Signal, UserCopy};

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::handler::{self, Handled, handler, tried};

timed_loop! {
    /// #BP is a trap: the interrupted address is already behind it.
    breakpoint: "int3"
}

handler! {
    /// Goes on behind it.
    resume:
}

pub(super) static PROBE: Probe = Probe {
    name: "traps/breakpoint",
    operation: "One INT3 (#BP) and the SIGTRAP handler that counts it and returns.",
    crosses: &[KernelEntry, Exception, KernelCode, Signal, UserCopy],
    timed: |_| Timed::once("int3", TimedLoop::Long(breakpoint)),
    counts: Some("signals"),
    arm: |probe, params| {
        let timed = (probe.timed)(params);
        // SAFETY: the loop needs nothing from its context.
        let timed_loop = unsafe { Loop::new(timed, [0; 7], None, handler::any) }?;
        let handled = Handled::new(libc::SIGTRAP, resume, timed);
        Ok(tried(timed_loop.with_around(handled), 1, "int3")?.here())
    },
    absence: handler::absence,
    ..PLAIN
};
