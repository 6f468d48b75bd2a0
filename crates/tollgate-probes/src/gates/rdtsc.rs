//! The time stamp counter, unfenced.

use tollgate_model::Boundary::{TimeStampCounter, VmExit};

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::results;

timed_loop! {
    /// Reads the counter and throws it away.
    read_counter: "rdtsc"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/rdtsc",
    operation: "One RDTSC, unfenced; a hypervisor may trap it.",
    crosses: &[TimeStampCounter, VmExit],
    timed: |_| Timed::once("rdtsc", TimedLoop::Long(read_counter)),
    // SAFETY: the loop needs nothing from its context.
    arm: |probe, params| Ok(unsafe { Loop::new((probe.timed)(params), [0; 7], None, results::any) }?.here()),
    absence: |signal| (signal == libc::SIGSEGV).then_some("RDTSC is forbidden to this process (CR4.TSD)"),
    ..PLAIN
};
