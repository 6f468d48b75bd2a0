//! Adopts orphans: processes that lose their parents while a command is traced become children of this process.
//!
//! This process is the subreaper of the command's tree, so the end of the last process is known and its time counts.

use std::cell::Cell;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_os::children::{Inherited, Subreaper};
use tollgate_os::process::{self, Status, Wait};

/// The pause between two checks of our own children, after a child that is not ours has ended.
const LOOK: Duration = Duration::from_millis(1);

/// Signals and orphans belong to the whole process, so only one command can run at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Makes this the only command until the result is dropped.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, orphans become children of this process.
pub(crate) struct Descendants {
    _subreaper: Subreaper,
    /// Children that existed before: they are neither waited for nor ended.
    others: Inherited,
    peak_kib: Cell<u64>,
}

impl Descendants {
    pub fn begin() -> Self {
        Self { others: Inherited::now(), _subreaper: Subreaper::begin(), peak_kib: Cell::new(0) }
    }

    /// Waits for the next stop or end of a child of ours, or of a traced thread. `known` returns the processes and threads
    /// that may be waited for, as far as the caller knows. They are waited for one by one if a child that is not ours has
    /// ended, since the kernel would return that one again and again.
    ///
    /// # Errors
    /// EINTR, and ECHILD if there is nothing to wait for.
    pub fn wait(&self, flags: libc::c_int, known: impl Fn() -> Vec<libc::pid_t>) -> io::Result<Option<Wait>> {
        let waited = self.wait_for_one(flags, known);
        if let Ok(Some(Wait { status: Status::Ended(_), usage, .. })) = &waited {
            self.peak_kib.set(self.peak_kib.get().max(usage.maxrss_kib));
        }
        waited
    }

    /// Returns the largest peak memory of a process that has ended, in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.peak_kib.get()
    }

    fn wait_for_one(
        &self,
        flags: libc::c_int,
        known: impl Fn() -> Vec<libc::pid_t>,
    ) -> io::Result<Option<Wait>> {
        if self.others.is_empty() {
            return process::wait4(-1, flags);
        }
        while let Some(pid) = process::peek(None, libc::WEXITED | flags)? {
            if self.others.contains(pid) {
                return self.wait_for_each(flags, known());
            }
            if let Some(wait) = process::wait4(pid, flags | libc::WNOHANG)? {
                return Ok(Some(wait));
            }
        }
        Ok(None)
    }

    fn wait_for_each(&self, flags: libc::c_int, known: Vec<libc::pid_t>) -> io::Result<Option<Wait>> {
        let began = Instant::now();
        let known = known.into_iter().filter(|pid| !self.others.contains(*pid));
        // Known processes come first, since listing children may take long without /proc.
        let later = std::iter::once_with(|| self.others.later()).flatten();
        let mut any = false;
        for pid in known.chain(later) {
            match process::wait4(pid, flags | libc::WNOHANG) {
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
        // The caller checks its own state, as after a signal.
        Err(io::ErrorKind::Interrupted.into())
    }

    pub fn wait_for_the_dead(&self) {
        while let Ok(Some(_)) = self.wait(libc::WNOHANG, Vec::new) {}
    }

    /// Returns whether this process has no children except those that existed before.
    pub fn is_empty(&self) -> bool {
        if self.others.is_empty() {
            let none = process::wait4(-1, libc::WNOHANG);
            return matches!(none, Err(error) if error.raw_os_error() == Some(libc::ECHILD));
        }
        self.others.later().is_empty()
    }
}
