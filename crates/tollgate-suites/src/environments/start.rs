use crate::prelude::*;
use tollgate_engine::Aspect;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "environments/start",
    operation: "Starts an environment: from fork(2) of its first process to the first message of an agent in it.",
    avoid: "Start it once and fork inside of it, or keep some started.",
    source: "clone(2), execve(2), namespaces(7), OCI runtime specification (runtime.md, Lifecycle)",
    crosses: &[KernelCode, ProcessCreation, Exec, PageFault, FileSystem],
    timed: |_| Timed::Whole("fork(2), execve(2), read(2)"),
    kind: Kind::Environment(|_| Some(Aspect::Start)),
    ..PLAIN
};
