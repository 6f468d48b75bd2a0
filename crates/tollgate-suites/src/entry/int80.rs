use super::results;
use crate::prelude::*;

timed_loop! {
    /// Number -1 in the 32-bit table.
    refused_interrupt: called "mov eax, -1", "int 0x80"; aarch64 none "INT 80h is an instruction of x86"
}

/// Explains a fault at `int 0x80`: without IA-32 emulation there is no gate for user mode.
pub(super) const ABSENCE: &[(i32, &str)] = &[
    (libc::SIGSEGV, "int 0x80 faults: this kernel has no IA-32 emulation"),
    (libc::SIGSYS, "int 0x80 is killed by a seccomp filter (SIGSYS)"),
];

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/int80",
    operation: "One INT 80h with number -1, which the kernel refuses with ENOSYS, from 64-bit code.",
    avoid: "Use SYSCALL from 64-bit code: INT goes through a gate of the IDT and returns by IRET.",
    source: "Intel SDM vol. 2, INT n; Linux arch/x86/entry/entry_64_compat.S, int80_is_external()",
    crosses: &[KernelEntry, SystemCall, KernelCode, CompatEntry, Exception],
    beside: &[
        (
            "entry/vm-exit",
            "an exit to the hypervisor, as a guest's read of its local APIC may be (int80_is_external())",
        ),
        ("entry/syscall", "the same call by SYSCALL"),
    ],
    timed: |_| Timed::once("int", TimedLoop::Long(refused_interrupt)),
    headlines: &[Headline::of(Section::Entry, "int 0x80", &[])],
    kind: Kind::Instance(|timed, _, _| {
        let mut timed = Loop::without_context(timed, |result| results::refused_32(result as u32))?;
        let note = results::note_on_refusal(timed.try_once());
        Ok(timed.here().with_notes(note))
    }),
    absence: ABSENCE,
    ..PLAIN
};
