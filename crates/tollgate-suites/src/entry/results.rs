//! Checks of results, so that a failed operation is not measured as one that worked.

/// `-ENOSYS`, as a 64-bit kernel returns it for a number that no system call has; or `-EPERM`, as a
/// container's seccomp filter does before the kernel can.
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

/// The same in `eax`; the upper half is ignored.
pub(super) fn refused_32(result: u32) -> Result<(), String> {
    refused(result as i32 as i64 as u64)
}

pub(super) fn own_pid(result: u64) -> Result<(), String> {
    let pid = u64::from(std::process::id());
    if result == pid { Ok(()) } else { Err(format!("getpid returned {} instead of {pid}", result as i64)) }
}
