//! system(3).

use tollgate_engine::{Benchmark, Kind, PLAIN, Timed};
use tollgate_model::Boundary::{
    AddressSpaceCopy, ContextSwitch, Exec, KernelAllocation, KernelCode, PageFault, ProcessCreation,
    ProcessExit, Tlb, WakeUp,
};

use super::creation::What;
use super::fixture::instance;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/shell",
    operation: "One program without a C library started by fork and execve of /bin/sh -c, until the shell is reaped: system(3).",
    crosses: &[
        ProcessCreation,
        AddressSpaceCopy,
        Exec,
        PageFault,
        Tlb,
        KernelAllocation,
        KernelCode,
        ContextSwitch,
        WakeUp,
        ProcessExit,
    ],
    timed: |_| Timed::Whole("fork(3), execve(2) of /bin/sh"),
    kind: Kind::Instance(|_, params, context| instance(What::Shell, params, context)),
    ..PLAIN
};
