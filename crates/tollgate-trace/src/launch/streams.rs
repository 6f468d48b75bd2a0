//! Remembers which standard streams were closed when this process began.
//!
//! Rust's runtime opens /dev/null for a closed stream before `main`. The command must find it closed.

#![allow(unsafe_code)] // fcntl(2) before `main`, and close(2) in a forked child.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// The C library calls this before `main`, and before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (stream, closed) in (0..).zip(&CLOSED) {
        // SAFETY: the call only queries the kernel. The only error of F_GETFD is EBADF.
        closed.store(unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0, Relaxed);
    }
}

/// Makes this process the leader of a session with this controlling terminal, and the terminal its standard streams. Returns
/// whether that succeeded.
///
/// # Safety
/// Only in a freshly forked child.
pub(super) unsafe fn become_terminal(terminal: libc::c_int) -> bool {
    // SAFETY: system calls on numbers.
    unsafe {
        libc::setsid() >= 0
            && libc::ioctl(terminal, libc::TIOCSCTTY, 0) == 0
            && (0..3).all(|stream| libc::dup2(terminal, stream) == stream)
    }
}

/// Closes the streams again.
///
/// # Safety
/// Only in a freshly forked child.
pub(super) unsafe fn close_again() {
    for (stream, closed) in (0..).zip(&CLOSED) {
        if closed.load(Relaxed) {
            // SAFETY: nothing in the child uses the stream.
            unsafe { libc::close(stream) };
        }
    }
}
