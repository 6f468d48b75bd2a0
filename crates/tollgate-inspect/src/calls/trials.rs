//! Whether a call is allowed, tested by a call that does nothing.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tollgate_model::traced::Ended;
use tollgate_os::process;

use super::errno;

/// Tests whether `io_uring_setup(2)` is allowed: without memory for its parameters it fails either way.
pub(crate) fn may_use_io_uring() -> Result<bool, i32> {
    const NO_PARAMETERS: libc::c_ulong = 0;
    // SAFETY: the call refuses a null pointer with EFAULT.
    let status = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1 as libc::c_ulong, NO_PARAMETERS) };
    allowed(status, &[libc::EFAULT, libc::EINVAL])
}

/// Tests whether `userfaultfd(2)` is allowed for user and kernel faults: with a nonexistent flag it fails either way.
pub(crate) fn may_use_userfaultfd() -> Result<bool, i32> {
    const NO_SUCH_FLAG: libc::c_ulong = 1 << 30;
    // SAFETY: takes no pointers, and makes nothing with such a flag.
    allowed(unsafe { libc::syscall(libc::SYS_userfaultfd, NO_SUCH_FLAG) }, &[libc::EINVAL])
}

/// Tests whether `perf_event_open(2)` may count user mode, and with `kernel` kernel mode too. A nonexistent group makes it fail
/// after the permission check; making an event would make the kernel wait 10 ms for all processors.
pub(crate) fn may_count(kernel: bool) -> Result<bool, i32> {
    const SIZE: usize = 64;
    const TYPE_SOFTWARE: u32 = 1;
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const NO_SUCH_GROUP: libc::c_long = libc::c_int::MAX as libc::c_long;
    let mut attributes = [0_u64; SIZE / 8];
    attributes[0] = u64::from(TYPE_SOFTWARE) | (SIZE as u64) << 32;
    attributes[5] = DISABLED | EXCLUDE_HYPERVISOR | if kernel { 0 } else { EXCLUDE_KERNEL };
    let (own, any) = (0 as libc::c_long, -1 as libc::c_long);
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    // SAFETY: the pointer is to attributes of the size that is written in them (PERF_ATTR_SIZE_VER0), and nothing is made.
    let status = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), own, any, NO_SUCH_GROUP, CLOSE_ON_EXEC)
    };
    allowed(status, &[libc::EBADF])
}

/// Returns whether a call that was meant to fail failed only because of its arguments. A refusal is an answer too.
fn allowed(status: libc::c_long, harmless: &[i32]) -> Result<bool, i32> {
    match errno() {
        _ if status >= 0 => Ok(true),
        errno if harmless.contains(&errno) => Ok(true),
        libc::EPERM | libc::EACCES => Ok(false),
        errno => Err(errno),
    }
}

/// Asks in a child, which a filter may kill: this counts as a no. The question may only make system calls.
pub(crate) fn in_a_child(ask: impl FnOnce() -> Result<bool, i32>) -> Result<bool, i32> {
    const YES: i32 = 0;
    const NO: i32 = 1;
    const ERRORS: i32 = 2;
    let child = process::fork(|| {
        // No core dump is left if the child is killed.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        match ask() {
            Ok(true) => YES,
            Ok(false) => NO,
            Err(errno) => errno.saturating_add(ERRORS).clamp(ERRORS, 255),
        }
    });
    match child.and_then(|mut child| child.wait()) {
        Ok(Ended::Exit(YES)) => Ok(true),
        Ok(Ended::Exit(NO) | Ended::Signal(_)) => Ok(false),
        Ok(Ended::Exit(errno)) => Err(errno - ERRORS),
        Err(error) => Err(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_os::signals;

    #[test]
    fn a_child_answers_as_the_process_itself() {
        for ask in [may_use_io_uring, may_use_userfaultfd, || may_count(false)] {
            assert_eq!(in_a_child(ask), ask());
        }
        assert_eq!(in_a_child(|| Err(libc::ENOSYS)), Err(libc::ENOSYS));
        let ended = in_a_child(|| {
            signals::raise(libc::SIGSYS);
            Ok(true)
        });
        assert_eq!(ended, Ok(false));
    }
}
