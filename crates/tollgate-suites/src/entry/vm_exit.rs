use tollgate_arch::cpuid::CPUID;

use crate::prelude::*;

timed_loop! {
    /// Leaf 0, which a hypervisor answers at once.
    cpuid: "xor eax, eax", "xor ecx, ecx", "cpuid";
    aarch64 none "arm64 has no instruction that leaves a virtual machine from a program: HVC is undefined there"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/vm-exit",
    operation: "One CPUID of leaf 0, which makes a virtual machine exit to its hypervisor and resume.",
    avoid: "Avoid instructions that exit: CPUID in hot code, short timers, writes to devices' registers, interrupts between processors.",
    source: "Intel SDM vol. 3, Instructions That Cause VM Exits; AMD APM vol. 2, Secure Virtual Machine",
    crosses: &[VmExit],
    timed: |_| Timed::once("cpuid", TimedLoop::Long(cpuid)),
    headlines: &[Headline::of(Section::Entry, "VM exit (CPUID)", &[])],
    kind: Kind::Instance(|timed, _, _| {
        if !says_hypervisor() && !takes_longer_than_an_instruction() {
            return Err(skip!("no hypervisor: CPUID.1:ECX[31] is clear and cpuid is as fast as on hardware"));
        }
        Ok(Loop::without_context(timed, checks::any)?.here())
    }),
    // An exit changes predictors and caches: the hypervisor uses them, and possibly other work that it runs.
    company: Company::Own,
    absence: &[(libc::SIGSEGV, "cpuid is forbidden to this process (CPUID faulting)")],
    uncounted: Some("QEMU's translator executes CPUID itself: a guest of it makes no exit"),
    ..PLAIN
};

/// CPUID.1:ECX\[31\], which hypervisors set and processors do not.
fn says_hypervisor() -> bool {
    CPUID.is_some_and(|ask| ask(1, 0).ecx & 1 << 31 != 0)
}

/// Returns whether CPUID exits: it takes 30 to 100 ns on hardware, several hundred ns or more with an exit.
fn takes_longer_than_an_instruction() -> bool {
    const EXIT: u64 = 400;
    let Some(ask) = CPUID else { return false };
    let shortest = (0..32).map(|_| Clock::Kernel.time(|| _ = std::hint::black_box(ask(0, 0))).ticks).min();
    shortest.is_some_and(|nanoseconds| nanoseconds > EXIT)
}
