//! The plain call under a seccomp filter that allows everything.
//!
//! Filters, user dispatch and speculation control are attributes of a thread. Their instances live in threads of the
//! process that runs the plain call, and share its rounds.

use super::syscall;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/seccomp",
    operation: "The refused call of entry/syscall in a thread whose seccomp filter runs this many instructions and allows it.",
    avoid: "Put frequent calls first in the filter and allow them without looking at arguments: the kernel caches such verdicts.",
    source: "seccomp(2); Linux kernel/seccomp.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, SeccompFilter, StoreForwarding],
    baseline: Baseline::Benchmark("entry/syscall"),
    cases: |_| each("instructions", &[1, 32, 256]),
    kind: Kind::Instance(|_, params, _| {
        let instructions = number(params, "instructions") as usize;
        syscall::refused_loop()?.in_thread(move || install(instructions))
    }),
    absence: &[],
    headlines: &[],
    ..syscall::BENCHMARK
};

/// Installs an allowing filter with this number of instructions on the calling thread, for its lifetime.
///
/// Linux caches which call numbers a filter always allows and skips the filter for them (kernel/seccomp.c,
/// seccomp_cache_prepare). Number -1 is outside the cache, and a load of an argument prevents caching.
fn install(instructions: usize) -> Result<()> {
    const LOAD_ARGUMENT: libc::sock_filter =
        libc::sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: 16 };
    const ALLOW: libc::sock_filter = libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    };
    let mut filter = vec![LOAD_ARGUMENT; instructions.saturating_sub(1)];
    filter.push(ALLOW);
    tollgate_os::seccomp::install(&filter).map_err(|error| {
        let why = tollgate_model::text::plainly(&error);
        skip!("a seccomp filter is refused: {why}")
    })
}
