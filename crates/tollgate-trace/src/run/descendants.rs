//! Processes that lose their parents while a command is traced are this process's children.
//!
//! So they are waited for, their time is known, and it is known when the last of them has ended.
//!
//! The tracer is the subreaper of the command's tree, so that the end of the last process is known and its
//! time counts.

#![allow(unsafe_code)] // prctl(2).

use std::io;
use std::time::{Duration, Instant};

use tollgate_os::children::Inherited;

use crate::ptrace::sys::{self, Wait};

/// Where a child that is not ours has ended, so long is waited between two looks at those that are.
const LOOK: Duration = Duration::from_millis(1);
/// So long is waited for processes to go that were killed.
const PATIENCE: Duration = Duration::from_secs(1);

/// As long as it lives, orphans come to this process (`PR_SET_CHILD_SUBREAPER`).
pub(crate) struct Descendants {
    was_before: bool,
    /// Children that were there before: they are neither waited for nor ended.
    others: Inherited,
}

impl Descendants {
    pub fn begin() -> Self {
        let others = Inherited::now();
        let mut was = 0;
        // SAFETY: the kernel writes to `was`.
        unsafe {
            libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut was, 0, 0, 0);
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        }
        Self { was_before: was != 0, others }
    }

    /// Waits for the next stop or end of a child of ours, or of a thread that is traced. `known`: processes and threads that
    /// may be waited for, as far as the caller knows them; they are asked for one by one where a child that is not ours has
    /// ended, since the kernel returns that one again and again.
    ///
    /// # Errors
    /// EINTR, and ECHILD where there is none to wait for.
    pub fn wait(&self, flags: libc::c_int, known: impl Fn() -> Vec<libc::pid_t>) -> io::Result<Option<Wait>> {
        if self.others.is_empty() {
            return sys::wait(-1, flags);
        }
        while let Some(pid) = sys::peek(flags)? {
            if self.others.contains(pid) {
                return self.wait_for_each(flags, known());
            }
            if let Some(wait) = sys::wait(pid, flags | libc::WNOHANG)? {
                return Ok(Some(wait));
            }
        }
        Ok(None)
    }

    fn wait_for_each(&self, flags: libc::c_int, known: Vec<libc::pid_t>) -> io::Result<Option<Wait>> {
        let began = Instant::now();
        let known = known.into_iter().filter(|pid| !self.others.contains(*pid));
        // Known processes come first: to list children may take long where there is no /proc.
        let mut any = false;
        for pid in known {
            match sys::wait(pid, flags | libc::WNOHANG) {
                Ok(Some(wait)) => return Ok(Some(wait)),
                Ok(None) => any = true,
                Err(_) => {}
            }
        }
        for pid in self.others.later() {
            match sys::wait(pid, flags | libc::WNOHANG) {
                Ok(Some(wait)) => return Ok(Some(wait)),
                Ok(None) => any = true,
                Err(_) => {}
            }
        }
        if !any {
            return Err(io::Error::from_raw_os_error(libc::ECHILD));
        }
        if flags & libc::WNOHANG != 0 {
            return Ok(None);
        }
        std::thread::sleep(LOOK.max(began.elapsed() * 4));
        // The caller looks at its own affairs, as after a signal.
        Err(io::ErrorKind::Interrupted.into())
    }

    /// Waits for children that have ended, so that none of them is left.
    pub fn wait_for_the_dead(&self) {
        while let Ok(Some(_)) = self.wait(libc::WNOHANG, Vec::new) {}
    }

    /// Whether this process has no children but those that were there before.
    pub fn is_empty(&self) -> bool {
        if self.others.is_empty() {
            let none = sys::wait(-1, libc::WNOHANG);
            return matches!(none, Err(error) if error.raw_os_error() == Some(libc::ECHILD));
        }
        self.others.later().is_empty()
    }

    /// Ends the command's descendants, generation by generation: a process that loses its parent becomes our child.
    pub fn end_all(&self) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.wait_for_the_dead();
            let left = self.others.later();
            if left.is_empty() {
                return;
            }
            for pid in left {
                // It is our child, and keeps its number until it is waited for.
                let _ = sys::kill(pid);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Descendants {
    fn drop(&mut self) {
        // SAFETY: a call on numbers.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(self.was_before), 0, 0, 0) };
    }
}
