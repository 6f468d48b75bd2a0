//! The child that borrows its parent's memory.

use tollgate_model::Boundary::{
    ContextSwitch, KernelAllocation, KernelCode, ProcessCreation, ProcessExit, WakeUp,
};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe};

use super::creation::What;
use super::memory::{kinds, with};
use super::stage::arm;

pub(super) static PROBE: Probe = Probe {
    name: "processes/vfork",
    operation: "One vfork of a process with so much memory, until the call returns (the child has left by then) or until \
                the child is waited for.",
    crosses: &[ProcessCreation, KernelAllocation, KernelCode, ContextSwitch, WakeUp, ProcessExit],
    timed: |_| Timed::Whole("vfork(2)"),
    cases: || with(kinds(), "until", &["return", "gone"]),
    arm: |_, params| arm(What::Vfork, params),
    ..PLAIN
};
