use super::results;
use crate::prelude::*;

compat_loop! {
    refused_vsyscall = "tollgate_compat_fast": "mov eax, -1", "call esi"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/compat-fast",
    operation: "One refused call from a 32-bit program through its vDSO, by the instruction found there.",
    avoid: "Use a 64-bit program.",
    source: "Intel SDM vol. 2, SYSENTER; vdso(7)",
    crosses: &[KernelEntry, SystemCall, KernelCode, CompatEntry, CompatFastEntry],
    timed: |_| Timed::once("call", TimedLoop::Compat(refused_vsyscall)),
    kind: Kind::Instance(|timed, _, _| {
        let (instance, entry) = Instance::in_compat(timed, results::refused_32)?;
        match entry {
            Entry::Unknown => Err(skip!("32-bit programs have no vDSO here (AT_SYSINFO)")),
            entry => Ok(instance.with_notes([format!("enters by {}", entry.name())])),
        }
    }),
    ..PLAIN
};
