use super::memory::{kinds, with};
use super::{creation::What, fixture::instance};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/fork",
    operation: "One fork of a process with this much memory, until the call returns or until the child, which exits at once, is reaped.",
    avoid: "Use posix_spawn or vfork to start a program, threads to share work, and huge pages for memory that is forked.",
    source: "fork(2); posix_spawn(3); Linux mm/memory.c, copy_page_range()",
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
    timed: |_| Timed::Whole("fork(3)"),
    cases: |_| with(kinds(), "until", &["return", "exited"]),
    headlines: &[Headline::of(
        Section::Processes,
        "fork + exit + wait",
        &[("dirty_mib", "0"), ("until", "exited")],
    )],
    forks: |_| true,
    kind: Kind::Instance(|_, params, context| instance(What::Fork, params, context)),
    ..PLAIN
};
