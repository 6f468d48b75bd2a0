use super::{creation::What, fixture::instance, image::Image, memory::with, posix_spawn::cases_of_images};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/fork-exec",
    operation: "One program started by fork and execve from a process with this much memory, until the program, which exits at once, is reaped.",
    avoid: "Use posix_spawn: it does not copy the page tables of a large process.",
    source: "execve(2); posix_spawn(3)",
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
    beside: &[("processes/fork", "the copy of the process"), ("processes/exec", "the program in its place")],
    timed: |_| Timed::Whole("fork(3), execve(2)"),
    cases: |_| with(cases_of_images(), "until", &["exited"]),
    forks: |_| true,
    kind: Kind::Instance(|_, params, context| {
        instance(What::ForkExec(Image::try_from(params)?), params, context)
    }),
    ..PLAIN
};
