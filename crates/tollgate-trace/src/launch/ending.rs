//! Ending as the command did.

#![allow(unsafe_code)] // Signals, and the limits of this process.

use std::mem;
use std::ptr;

use tollgate_model::traced::Ended;

/// Ends this process as the command ended: with its exit status, or by the same signal, so that the process that started this one
/// sees the command's own end. No core of this process is dumped.
pub fn end_like(ended: Ended) -> ! {
    let signal = match ended {
        Ended::Exit(status) => std::process::exit(status),
        Ended::Signal(signal) => signal,
    };
    // SAFETY: system calls on valid arguments; zeroes are a valid set.
    unsafe {
        // A limit of zero does not keep a core from a program that core_pattern names (core(5)); this does.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
        libc::raise(signal);
    }
    // The signal did not end it: it is the first process of a namespace, whose signals are the kernel's to give.
    std::process::exit(128_i32.saturating_add(signal))
}
