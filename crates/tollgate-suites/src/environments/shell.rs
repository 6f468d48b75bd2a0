use crate::prelude::*;
use tollgate_engine::Aspect;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "environments/start-to-shell",
    operation: "Starts an environment with `/bin/sh -c echo` in it: from fork(2) of its first process to the byte that the shell writes.",
    avoid: "Start it once and run commands inside of it (`runc exec`, `podman exec`), or keep some started.",
    source: "clone(2), execve(2), sh(1p), OCI runtime specification (runtime.md, Lifecycle)",
    crosses: &[KernelCode, ProcessCreation, Exec, PageFault, FileSystem],
    timed: |_| Timed::Whole("fork(2), execve(2), read(2)"),
    kind: Kind::Environment(|_| Some(Aspect::StartToShell)),
    ..PLAIN
};
