//! Checks of results, so that a failed operation is not measured as a successful one.

/// Expects `-ENOSYS`, which a 64-bit kernel returns for an unknown number, or a seccomp filter's `-EPERM`.
pub(super) fn refused(result: u64) -> Result<(), String> {
    match -(result as i64) as i32 {
        libc::ENOSYS | libc::EPERM => Ok(()),
        _ => {
            Err(format!("the refused call returned {} instead of -{} (ENOSYS)", result as i64, libc::ENOSYS))
        }
    }
}

pub(super) fn note_on_refusal(result: u64) -> Option<&'static str> {
    (result as i32 == -libc::EPERM)
        .then_some("refused by a seccomp filter (EPERM), which the latency includes")
}

/// Like [`refused`], for a result in `eax`. The upper half is ignored.
pub(super) fn refused_32(result: u32) -> Result<(), String> {
    refused(result as i32 as i64 as u64)
}

pub(super) fn own_pid(result: u64) -> Result<(), String> {
    let pid = u64::from(std::process::id());
    if result == pid { Ok(()) } else { Err(format!("getpid returned {} instead of {pid}", result as i64)) }
}
