use super::{creation::What, fixture::instance, fork};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/clone3",
    operation: "One clone3 that shares nothing (a fork without the C library), until the call returns or until the child, which exits at once, is reaped.",
    avoid: "Share the memory (CLONE_VM) where a copy of the address space is not needed.",
    source: "clone(2); Linux kernel/fork.c, copy_process()",
    timed: |_| Timed::Whole("clone3(2)"),
    kind: Kind::Instance(|_, params, context| instance(What::Clone3, params, context)),
    headlines: &[],
    ..fork::BENCHMARK
};
