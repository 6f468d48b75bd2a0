//! pthread_create(3).

use super::memory::{kinds, with};
use super::{creation::What, fixture::instance};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/thread",
    operation: "One thread that exits at once, until pthread_create returns or until the thread is joined.",
    avoid: "Keep a pool of threads.",
    source: "pthread_create(3); clone(2)",
    crosses: &[ProcessCreation, KernelAllocation, KernelCode, PageFault, ContextSwitch, WakeUp, ProcessExit],
    crossed_in: |params, boundary| match boundary {
        ContextSwitch | ProcessExit => word(params, "until") == "exited",
        _ => true,
    },
    timed: |_| Timed::Whole("pthread_create(3), pthread_join(3)"),
    cases: |_| with(kinds(), "until", &["return", "exited"]),
    headlines: &[Headline::of(
        Section::Processes,
        "thread create + join",
        &[("dirty_mib", "0"), ("until", "exited")],
    )],
    forks: |_| true,
    kind: Kind::Instance(|_, params, context| instance(What::Thread, params, context)),
    ..PLAIN
};
