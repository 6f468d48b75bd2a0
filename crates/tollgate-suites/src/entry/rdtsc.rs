use crate::prelude::*;

timed_loop! {
    /// The counter of arm64 is CNTVCT_EL0.
    read_counter: "rdtsc"; aarch64 "mrs x0, cntvct_el0"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/rdtsc",
    operation: "One read of the processor's counter (RDTSC, on arm64 CNTVCT_EL0), unfenced; a hypervisor may trap it.",
    avoid: "Read the clock once for several events; under a hypervisor that traps RDTSC use the vDSO's clock.",
    source: "Intel SDM vol. 2, RDTSC",
    crosses: &[TimeStampCounter, VmExit],
    timed: |_| Timed::once("rdtsc/mrs", TimedLoop::Long(read_counter)),
    kind: Kind::Instance(|timed, _, _| Ok(Loop::without_context(timed, checks::any)?.here())),
    absence: &[(libc::SIGSEGV, "RDTSC is forbidden to this process (CR4.TSD)")],
    ..PLAIN
};
