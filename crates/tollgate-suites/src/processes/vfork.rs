//! The child that borrows its parent's memory.

use tollgate_model::Boundary::{
    ContextSwitch, KernelAllocation, KernelCode, ProcessCreation, ProcessExit, WakeUp,
};

use tollgate_engine::Timed;
use tollgate_engine::benchmark::{Benchmark, PLAIN};

use super::creation::What;
use super::fixture::instance;
use super::memory::{kinds, with};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/vfork",
    operation: "One vfork of a process with so much memory, until the call returns (the child has left by then) or until \
                the child is waited for.",
    crosses: &[ProcessCreation, KernelAllocation, KernelCode, ContextSwitch, WakeUp, ProcessExit],
    timed: |_| Timed::Whole("vfork(2)"),
    cases: || with(kinds(), "until", &["return", "gone"]),
    instance: |_, params| instance(What::Vfork, params),
    ..PLAIN
};
