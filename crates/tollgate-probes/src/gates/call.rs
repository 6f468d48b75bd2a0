//! The ground: a call and its return, which cross nothing.

use tollgate_model::Boundary::{Call, StoreForwarding};

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::results;

timed_loop! {
    /// Calls a `ret`.
    call_and_return: "call 3f"; after "3:", "ret"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/call",
    operation: "One near call and its return within this program: the ground under every crossing.",
    crosses: &[Call, StoreForwarding],
    timed: |_| Timed::once("call", TimedLoop::Long(call_and_return)),
    // SAFETY: the loop needs nothing from its context.
    arm: |probe, params| Ok(unsafe { Loop::new((probe.timed)(params), [0; 7], None, results::any) }?.here()),
    ..PLAIN
};
