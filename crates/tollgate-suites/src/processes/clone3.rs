//! Fork by clone3(2), without the C library.

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed, word};
use tollgate_model::Boundary::{
    AddressSpaceCopy, ContextSwitch, KernelAllocation, KernelCode, PageFault, ProcessCreation, ProcessExit,
    Tlb, WakeUp,
};

use super::creation::What;
use super::fixture::instance;
use super::memory::{kinds, with};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/clone3",
    operation: "One clone3 that shares nothing (a fork without the C library), until the call returns or until the child, which exits at once, is reaped.",
    crosses: &[
        ProcessCreation,
        AddressSpaceCopy,
        KernelAllocation,
        KernelCode,
        PageFault,
        Tlb,
        ContextSwitch,
        WakeUp,
        ProcessExit,
    ],
    crossed_in: |params, boundary| match boundary {
        ContextSwitch | ProcessExit => word(params, "until") == "exited",
        _ => true,
    },
    timed: |_| Timed::Whole("clone3(2)"),
    cases: || with(kinds(), "until", &["return", "exited"]),
    kind: Kind::Instance(|_, params, context| instance(What::Clone3, params, context)),
    ..PLAIN
};
