//! The thread.

use tollgate_model::Boundary::{
    ContextSwitch, KernelAllocation, KernelCode, PageFault, ProcessCreation, ProcessExit, WakeUp,
};

use crate::bench::Timed;
use crate::probe::{PLAIN, Probe, word};

use super::creation::What;
use super::memory::{kinds, with};
use super::stage::arm;

pub(super) static PROBE: Probe = Probe {
    name: "processes/thread",
    operation: "One thread that ends at once, until pthread_create returns or until the thread is joined.",
    crosses: &[ProcessCreation, KernelAllocation, KernelCode, PageFault, ContextSwitch, WakeUp, ProcessExit],
    crossed_in: |params, boundary| match boundary {
        ContextSwitch | ProcessExit => word(params, "until") == "gone",
        _ => true,
    },
    timed: |_| Timed::Whole("pthread_create(3), pthread_join(3)"),
    cases: || with(kinds(), "until", &["return", "gone"]),
    arm: |_, params| arm(What::Thread, params),
    ..PLAIN
};
