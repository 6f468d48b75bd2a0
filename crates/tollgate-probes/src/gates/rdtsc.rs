//! The time stamp counter, unfenced.

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, TimedLoop};
use crate::probe::{Probe, one_case};

use super::results;

timed_loop! {
    /// Reads the counter and throws it away.
    read_counter: "rdtsc"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/rdtsc",
    operation: "One RDTSC, unfenced; a hypervisor may trap it.",
    instruction: "rdtsc",
    timed: TimedLoop::Long(read_counter),
    against: None,
    cases: one_case,
    // SAFETY: the loop needs nothing from its context.
    arm: |probe, _| Ok(unsafe { Loop::new(probe.timed, [0; 7], None, results::any) }?.here()),
    absence: |signal| (signal == libc::SIGSEGV).then_some("RDTSC is forbidden to this process (CR4.TSD)"),
};
