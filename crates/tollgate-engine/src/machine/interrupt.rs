//! Requests to stop: SIGINT, SIGTERM and SIGHUP set a flag, which every wait checks.
//!
//! A verb that makes processes or directories calls [`install`] before the first of them, checks [`requested`] after each of its
//! phases, and removes what it made. Finally the program calls [`conclude`] and raises the signal again, so that a shell's loop ends
//! too.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use tollgate_os::signals::{self, Disposition};

const ASKING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// In ns. timeout(1) signals the program and then its group, so a second signal within this time is the same request.
const SAME: u64 = 500_000_000;

/// The signal that came; 0 before. The signal handler writes both, so they are statics.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The time of the first signal by CLOCK_MONOTONIC, in nanoseconds; 0 before.
static CAME: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread's current step must end, see [`stop_step`].
    static STEP_STOPPED: Cell<bool> = const { Cell::new(false) };
    static ASIDE: Cell<bool> = const { Cell::new(false) };
}

/// Makes only calls that signal-safety(7) allows.
extern "C" fn note(signal: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let now = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned();
    match CAME.compare_exchange(0, now.max(1), Relaxed, Relaxed) {
        Ok(_) => SIGNAL.store(signal, Relaxed),
        Err(first) if now.saturating_sub(first) < SAME => {}
        // The signal is blocked while it is handled, and kills this process when this returns.
        Err(_) => {
            signals::default(&[signal]);
            signals::raise(signal);
        }
    }
}

/// Ignores SIGXFSZ: a write beyond RLIMIT_FSIZE fails with EFBIG instead of killing this process. Measured programs reset it.
pub fn ignore_file_size_signal() {
    signals::ignore(libc::SIGXFSZ);
}

/// Gives SIGCHLD its default action. If it is ignored, as after `trap '' CHLD` in a shell, wait(2) loses the status of children.
pub fn expect_children() {
    signals::default(&[libc::SIGCHLD]);
}

/// Installs handlers that set a flag for the signals that ask to stop. A second signal after half a second kills the process.
pub fn install() {
    ignore_file_size_signal();
    // SAFETY: the function does only what a handler may do.
    let noting = unsafe { Disposition::handler(note, 0) };
    for signal in ASKING {
        // A signal that was ignored at the start (nohup(1)) stays ignored.
        if !Disposition::of(signal).is_ignored() {
            let _ = noting.set(signal);
        }
    }
}

/// Ends this thread's current step as a signal would, until [`resume`], because an agent's coordinator no longer waits for it.
pub(crate) fn stop_step() {
    STEP_STOPPED.set(true);
}

/// Lets the next step begin. Returns whether the last one was stopped.
pub(crate) fn resume() -> bool {
    STEP_STOPPED.replace(false)
}

/// Hides the signal that asked to stop from this thread, so that the user's clean-up commands run. A later signal kills the process.
#[derive(Debug)]
#[must_use = "the signal is seen again when this is dropped"]
pub struct SetAside {
    was_before: bool,
    /// Affects only this thread.
    of_thread: PhantomData<*const ()>,
}

/// Hides the signal, see [`SetAside`].
pub fn set_aside() -> SetAside {
    SetAside { was_before: ASIDE.replace(true), of_thread: PhantomData }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        ASIDE.set(self.was_before);
    }
}

/// Returns the signal that asked to stop, if any.
pub fn requested() -> Option<i32> {
    if ASIDE.get() {
        return None;
    }
    match SIGNAL.load(Relaxed) {
        0 if STEP_STOPPED.get() => Some(libc::SIGTERM),
        0 => None,
        signal => Some(signal),
    }
}

/// Checks whether a step may go on.
///
/// # Errors
/// The result of `stop` for the signal that asked to stop, if any.
pub fn check<E>(stop: impl FnOnce(i32) -> E) -> Result<(), E> {
    requested().map_or(Ok(()), |signal| Err(stop(signal)))
}

/// Restores the default actions, then returns the signal that asked to stop, if any. None is lost: a later one kills the process.
pub fn conclude() -> Option<i32> {
    for signal in ASKING {
        if Disposition::of(signal).is_handled_by(note) {
            signals::default(&[signal]);
        }
    }
    requested()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_set_aside_is_seen_again_later() {
        stop_step();
        assert_eq!(requested(), Some(libc::SIGTERM));
        let aside = set_aside();
        assert_eq!(requested(), None);
        let inner = set_aside();
        drop(inner);
        assert_eq!(requested(), None);
        drop(aside);
        assert_eq!(requested(), Some(libc::SIGTERM));
        assert!(resume() && requested().is_none());
    }
}
