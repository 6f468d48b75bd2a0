use crate::prelude::*;
use tollgate_engine::Aspect;
use tollgate_engine::aspect::Memory;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "environments/memory",
    operation: "Memory while an agent waits in the environment: proportional set size of all its processes on this machine (a page that \
        several have is divided among them), growth of this machine's page cache since before the start, and the memory in use inside, as its own kernel reports it.",
    avoid: "Share files between environments, so that their pages are in memory once; give a guest little memory, or a balloon.",
    source: "proc_pid_smaps(5), proc_meminfo(5)",
    crosses: &[ProcessMemory, PageCache],
    crossed_in: |params, boundary| {
        boundary != PageCache || word(params, PARAMETER) == Memory::PageCache.name()
    },
    timed: |_| Timed::Whole("/proc/PID/smaps_rollup, /proc/meminfo"),
    unit: Unit::Bytes,
    cases: |_| each_word(PARAMETER, &Memory::ALL.map(Memory::name)),
    kind: Kind::Environment(|params| {
        Memory::ALL.into_iter().find(|of| of.name() == word(params, PARAMETER)).map(Aspect::Memory)
    }),
    ..PLAIN
};

const PARAMETER: &str = "of";
