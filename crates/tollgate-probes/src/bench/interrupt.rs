//! Being asked to stop: SIGINT, SIGTERM and SIGHUP set a flag, and whoever waits looks at it.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

static SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    SIGNAL.store(signal, Relaxed);
}

/// From now on the signals that ask a program to stop set a flag instead of ending it. The next one
/// after the first ends it as usual, so that nobody is ever stuck.
///
/// A file that grows beyond its limit (RLIMIT_FSIZE) becomes an error of the call that made it grow.
pub fn install() {
    // SAFETY: ignoring a signal has no handler to be unsafe.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: an all-zero sigaction is valid; `note` does nothing but store to an atomic.
        unsafe {
            let mut current: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut current);
            // Whoever started us with the signal ignored (nohup) meant it.
            if current.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as usize;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// The signal that asked to stop, if one has.
pub fn requested() -> Option<i32> {
    match SIGNAL.load(Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}
