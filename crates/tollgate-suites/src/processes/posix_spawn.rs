use super::image::Image;
use super::memory::{kinds, with};
use super::{creation::What, fixture::instance};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/posix-spawn",
    operation: "One program started by posix_spawn from a process with this much memory, until the call returns or until the program, which exits at once, is reaped.",
    avoid: "Link small helpers statically, or keep one running instead of starting many.",
    source: "posix_spawn(3); vfork(2)",
    crosses: &[
        ProcessCreation,
        Exec,
        PageFault,
        KernelAllocation,
        KernelCode,
        ContextSwitch,
        WakeUp,
        ProcessExit,
    ],
    crossed_in: |params, boundary| match boundary {
        ProcessExit => word(params, "until") == "exited",
        _ => true,
    },
    beside: &[
        ("processes/vfork", "a process without a copy of memory"),
        ("processes/exec", "the program in its place"),
    ],
    timed: |_| Timed::Whole("posix_spawn(3)"),
    cases: |_| with(cases_of_images(), "until", &["return", "exited"]),
    headlines: &[Headline::of(
        Section::Processes,
        "posix_spawn, dynamic",
        &[("dirty_mib", "0"), ("image", "dynamic"), ("until", "exited")],
    )],
    forks: |_| true,
    kind: Kind::Instance(|_, params, context| {
        instance(What::Spawn(Image::try_from(params)?), params, context)
    }),
    ..PLAIN
};

/// Each image from a process without additional memory, and the bare one from a process with each kind of memory.
pub(super) fn cases_of_images() -> Vec<Params> {
    let plain = |name: &&str| params(&[("dirty_mib", 0.into()), ("image", (*name).into())]);
    let bare = kinds().into_iter().skip(1).map(|mut kind| {
        kind.insert("image".to_owned(), ParamValue::from("bare"));
        kind
    });
    Image::WORDS.iter().map(plain).chain(bare).collect()
}
