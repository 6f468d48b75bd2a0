//! The cheapest call that does something.

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, TimedLoop};
use crate::probe::{Probe, never_absent, one_case};

use super::results;

timed_loop! {
    /// Number 39 in the 64-bit table.
    getpid: "mov eax, 39", "syscall"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/syscall-getpid",
    operation: "One getpid by SYSCALL (number 39 in the 64-bit table), past any C library's cache.",
    instruction: "syscall",
    timed: TimedLoop::Long(getpid),
    against: None,
    cases: one_case,
    // SAFETY: the loop needs nothing from its context.
    arm: |probe, _| Ok(unsafe { Loop::new(probe.timed, [0; 7], None, results::own_pid) }?.here()),
    absence: never_absent,
};
