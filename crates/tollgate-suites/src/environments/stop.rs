use crate::prelude::*;
use tollgate_engine::Aspect;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "environments/stop",
    operation: "Ends an environment: from the end of its agent's input to the end of the last process that its start made on this machine.",
    avoid: "Leave the end to a process that nothing waits for, or keep the environment for the next command.",
    source: "close(2), pidfd_open(2), exit_group(2), OCI runtime specification (runtime.md, Lifecycle)",
    crosses: &[KernelCode, ProcessExit, FileSystem],
    timed: |_| Timed::Whole("close(2), poll(2) of pidfd_open(2)"),
    kind: Kind::Environment(|_| Some(Aspect::Stop)),
    ..PLAIN
};
