//! Being asked to stop: SIGINT, SIGTERM and SIGHUP set a flag, and what waits looks at it.
//!
//! A verb that makes processes or directories calls [`install`] before the first of them, looks at [`requested`] after each
//! of its phases, and takes away what it made. The program's end calls [`conclude`], and ends by the signal that came: a
//! shell that runs it in a loop ends the loop then.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// The signals that ask a program to stop.
const ASKING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// timeout(1) sends its signal to the program and then to the program's group: so soon after the first one, a second one asks
/// for nothing new. In nanoseconds.
const SAME: u64 = 1_000_000_000;

static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// When the first one came, by CLOCK_MONOTONIC, in nanoseconds; 0 before that.
static CAME: AtomicU64 = AtomicU64::new(0);

/// Only what signal-safety(7) allows.
extern "C" fn note(signal: libc::c_int) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let now = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned();
    match CAME.compare_exchange(0, now.max(1), Relaxed, Relaxed) {
        Ok(_) => SIGNAL.store(signal, Relaxed),
        Err(first) if now.saturating_sub(first) < SAME => {}
        // SAFETY: the signal is blocked while it is handled, and ends this process when this returns.
        Err(_) => unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        },
    }
}

/// From now on a file that would grow beyond its limit (RLIMIT_FSIZE) is an error of the call that makes it grow, and not a
/// signal that ends this process. Programs that are measured get the signal's default action back.
pub fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal has no handler to be unsafe.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// From now on the signals that ask a program to stop set a flag instead of ending it. One that comes more than a second
/// after the first ends the process at once, so that it can always be ended.
pub fn install() {
    ignore_file_size_signal();
    for signal in ASKING {
        // SAFETY: an all-zero sigaction is valid; `note` does what a handler may do.
        unsafe {
            let mut current: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut current);
            // A signal that was ignored at the start (nohup(1)) stays ignored.
            if current.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as usize;
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

/// Gives the signals their default action back, and then says which one asked to stop, if one has: one that comes later ends
/// this process by itself, so that none is lost.
pub fn conclude() -> Option<i32> {
    for signal in ASKING {
        // SAFETY: zeroes are a valid action, and the kernel writes to it; the default action has no handler.
        unsafe {
            let mut current: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut current);
            if current.sa_sigaction == note as *const () as usize {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
    requested()
}
