use super::{creation::What, fixture::instance, fork};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/thread",
    operation: "One thread that exits at once, until pthread_create returns or until the thread is joined.",
    avoid: "Keep a pool of threads.",
    source: "pthread_create(3); clone(2)",
    crosses: &[ProcessCreation, KernelAllocation, KernelCode, PageFault, ContextSwitch, WakeUp, ProcessExit],
    timed: |_| Timed::Whole("pthread_create(3), pthread_join(3)"),
    headlines: &[Headline::of(
        Section::Processes,
        "thread create + join",
        &[("dirty_mib", "0"), ("until", "exited")],
    )],
    kind: Kind::Instance(|_, params, context| instance(What::Thread, params, context)),
    ..fork::BENCHMARK
};
