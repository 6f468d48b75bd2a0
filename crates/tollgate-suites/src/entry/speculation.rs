use super::syscall;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/speculation",
    operation: "The refused call of entry/syscall in a thread with speculative store bypass disabled by prctl.",
    avoid: "Leave speculative store bypass on for threads that run no foreign code.",
    source: "prctl(2), PR_SET_SPECULATION_CTRL; Linux Documentation/userspace-api/spec_ctrl.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, StoreForwarding],
    baseline: Baseline::Benchmark("entry/syscall"),
    cases: one_case,
    kind: Kind::Instance(|_, _, _| syscall::refused_loop()?.in_thread(disable_store_bypass)),
    absence: &[],
    headlines: &[],
    ..syscall::BENCHMARK
};

fn disable_store_bypass() -> Result<()> {
    // PR_SPEC_STORE_BYPASS and PR_SPEC_DISABLE; libc names none of them on arm64.
    const PR_SET_SPECULATION_CTRL: libc::c_int = 53;
    const STORE_BYPASS: libc::c_int = 0;
    const DISABLE: libc::c_int = 1 << 2;
    // SAFETY: plain numbers (prctl(2)).
    let outcome = unsafe { libc::prctl(PR_SET_SPECULATION_CTRL, STORE_BYPASS, DISABLE, 0, 0) };
    if outcome == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Refusal::Skip(match error.raw_os_error() {
        Some(libc::ENXIO) => {
            "store bypass is not a per-thread setting here: see the fact mitigation.spec_store_bypass"
                .to_owned()
        }
        _ => format!("disabling store bypass is refused: {}", last_error()),
    }))
}
