//! The cheapest call that does something.

use tollgate_model::Boundary::{KernelCode, KernelEntry, SystemCall};

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::results;

timed_loop! {
    /// Number 39 in the 64-bit table.
    getpid: "mov eax, 39", "syscall"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/syscall-getpid",
    operation: "One getpid by SYSCALL (number 39 in the 64-bit table), past any C library's cache.",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    timed: |_| Timed::once("syscall", TimedLoop::Long(getpid)),
    arm: |probe, params| {
        // SAFETY: the loop needs nothing from its context.
        Ok(unsafe { Loop::new((probe.timed)(params), [0; 7], None, results::own_pid) }?.here())
    },
    ..PLAIN
};
