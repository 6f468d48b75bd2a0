use super::results;
use crate::prelude::*;

timed_loop! {
    getpid: called call SYS_getpid()
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/syscall-getpid",
    operation: "One getpid by a system call, without any C library cache.",
    avoid: "Keep the number: a process's own changes only by fork.",
    source: "getpid(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    beside: &[("entry/syscall", "a call that the kernel refuses at once")],
    timed: |_| Timed::once("syscall/svc", TimedLoop::Long(getpid)),
    kind: Kind::Instance(|timed, _, _| Ok(Loop::without_context(timed, results::own_pid)?.here())),
    ..PLAIN
};
