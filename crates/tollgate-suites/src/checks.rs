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

pub(crate) fn last_error() -> String {
    tollgate_model::text::plainly(&std::io::Error::last_os_error())
}

/// Explains SIGSYS from a seccomp filter, for `Benchmark::absence`.
pub(crate) fn killed_by_filter(signal: i32) -> Option<&'static str> {
    (signal == libc::SIGSYS).then_some("a seccomp filter kills a required system call (SIGSYS)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filters_kill_is_a_skip() {
        assert!(killed_by_filter(libc::SIGSYS).is_some_and(|why| why.contains("SIGSYS")));
        assert_eq!(killed_by_filter(libc::SIGSEGV), None);
    }
}
