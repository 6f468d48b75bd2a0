//! Processes that lose their parents while a command is followed are this process's children.
//!
//! So they are waited for, their time is known, and it is known when the last of them has ended.

#![allow(unsafe_code)] // prctl(2).

use crate::ptrace::sys;

/// As long as it lives, orphans come to this process (`PR_SET_CHILD_SUBREAPER`).
pub(crate) struct Household {
    was_before: bool,
}

impl Household {
    pub fn begin() -> Self {
        let mut was = 0;
        // SAFETY: the kernel writes to `was`.
        unsafe {
            libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut was, 0, 0, 0);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        }
        Self { was_before: was != 0 }
    }

    /// Waits for children that have ended, so that none of them is left.
    pub fn wait_for_the_dead(&self) {
        while let Ok(Some(_)) = sys::wait(-1, libc::WNOHANG) {}
    }
}

impl Drop for Household {
    fn drop(&mut self) {
        // SAFETY: a call on numbers.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(self.was_before), 0, 0, 0) };
    }
}
