use super::{creation::What, fixture::instance, fork};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/vfork",
    operation: "One vfork of a process with this much memory, until the call returns (after the child's exit) or until the child is reaped.",
    avoid: "Use posix_spawn, which does the same safely.",
    source: "vfork(2); posix_spawn(3)",
    crosses: &[ProcessCreation, KernelAllocation, KernelCode, ContextSwitch, WakeUp, ProcessExit],
    timed: |_| Timed::Whole("vfork(2)"),
    crossed_in: |_, _| true,
    kind: Kind::Instance(|_, params, context| instance(What::Vfork, params, context)),
    headlines: &[],
    ..fork::BENCHMARK
};
