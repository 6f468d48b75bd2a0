use super::{creation::What, fixture::instance, fork_exec};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/shell",
    operation: "One program without a C library started by fork and execve of /bin/sh -c, until the shell is reaped: system(3).",
    avoid: "Start the program itself by posix_spawn instead of a shell.",
    source: "system(3); posix_spawn(3)",
    timed: |_| Timed::Whole("fork(3), execve(2) of /bin/sh"),
    cases: one_case,
    kind: Kind::Instance(|_, params, context| instance(What::Shell, params, context)),
    ..fork_exec::BENCHMARK
};
