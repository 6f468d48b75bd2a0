use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use tollgate_engine::checked;

pub(crate) fn owned(result: impl Into<i64>) -> io::Result<OwnedFd> {
    let descriptor = checked(result)?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as libc::c_int) })
}

pub(crate) fn eventfd(count: libc::c_uint, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: eventfd(2) takes two numbers.
    owned(unsafe { libc::eventfd(count, libc::EFD_CLOEXEC | flags) })
}
