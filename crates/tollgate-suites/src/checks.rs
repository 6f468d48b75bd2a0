use tollgate_arch::features;
use tollgate_engine::{Result, skip};

/// Expects 0, as most successful calls return.
pub(crate) fn zero(result: u64) -> Result<(), String> {
    match result as i32 {
        0 => Ok(()),
        other => Err(format!("the call returned {other} instead of 0")),
    }
}

/// Accepts any result: events are counted instead, or nothing can go wrong.
pub(crate) fn any(_result: u64) -> Result<(), String> {
    Ok(())
}

/// Refuses a processor whose atomic operations are loops of LDXR and STXR.
pub(crate) fn atomics() -> Result<()> {
    if features::has_atomics() {
        Ok(())
    } else {
        Err(skip!("the processor has no atomic instructions (LSE of Armv8.1, HWCAP_ATOMICS)"))
    }
}

pub(crate) fn last_error() -> String {
    tollgate_model::text::plainly(&std::io::Error::last_os_error())
}

/// Explains SIGSYS from a seccomp filter, for `Benchmark::absence`.
pub(crate) const KILLED_BY_FILTER: (i32, &str) =
    (libc::SIGSYS, "a seccomp filter kills a required system call (SIGSYS)");
