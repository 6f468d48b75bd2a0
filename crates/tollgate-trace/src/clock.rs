//! The clock of all times here, and of BPF programs (bpf_ktime_get_ns).

/// Returns CLOCK_MONOTONIC, in nanoseconds. May be called in a forked child.
pub(crate) fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
