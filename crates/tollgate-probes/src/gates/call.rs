//! The ground: a call and its return, which cross nothing.

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, TimedLoop};
use crate::probe::{Probe, never_absent, one_case};

use super::results;

timed_loop! {
    /// Calls a `ret`.
    call_and_return: "call 3f"; after "3:", "ret"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/call",
    operation: "One near call and its return within this program: the ground under every crossing.",
    instruction: "call",
    timed: TimedLoop::Long(call_and_return),
    against: None,
    cases: one_case,
    // SAFETY: the loop needs nothing from its context.
    arm: |probe, _| Ok(unsafe { Loop::new(probe.timed, [0; 7], None, results::any) }?.here()),
    absence: never_absent,
};
