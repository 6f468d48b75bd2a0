use super::results;
use crate::prelude::*;

compat_loop! {
    refused_interrupt = "tollgate_compat_int80": "mov eax, -1", "int 0x80"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/compat-int80",
    operation: "One INT 80h with number -1, which the kernel refuses, from a 32-bit program.",
    avoid: "Call through the 32-bit vDSO, which uses SYSENTER or SYSCALL, or use a 64-bit program.",
    source: "vdso(7); Linux arch/x86/entry/entry_64_compat.S",
    crosses: &[KernelEntry, SystemCall, KernelCode, CompatEntry, Exception],
    beside: &[(
        "entry/vm-exit",
        "an exit to the hypervisor, as a guest's read of its local APIC may be (int80_is_external())",
    )],
    timed: |_| Timed::once("int", TimedLoop::Compat(refused_interrupt)),
    kind: Kind::Instance(|timed, _, _| {
        Instance::in_compat(timed, results::refused_32).map(|(instance, _)| instance)
    }),
    ..PLAIN
};
