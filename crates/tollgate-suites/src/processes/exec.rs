use super::creation::{LINKS, What};
use super::fixture::instance;
use super::image::Image;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/exec",
    operation: "One execve of a program that executes the next one: a chain of five less the shorter of two chains of one, before and after it, divided by four.",
    avoid: "Link statically, or with fewer libraries: the dynamic loader maps and relocates each.",
    source: "execve(2); ld.so(8)",
    crosses: &[Exec, PageFault, Tlb, KernelAllocation, KernelCode],
    timed: |_| Timed::Whole("execve(2)"),
    cases: |_| each_word("image", Image::WORDS),
    forks: |_| true,
    kind: Kind::Instance(|_, params, context| {
        Ok(instance(What::Exec(Image::try_from(params)?), params, context)?.with_ops(LINKS as u64))
    }),
    ..PLAIN
};
