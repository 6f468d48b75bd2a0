//! Which of the standard streams were closed when this process began.
//!
//! Rust's own start opens /dev/null for a stream that is closed, before `main`. The command is to find it closed.

#![allow(unsafe_code)] // fcntl(2) before `main`, and close(2) in a copy of this process.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Called by the C library before `main`, and before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (stream, closed) in (0..).zip(&CLOSED) {
        // SAFETY: a question to the kernel. The only error of F_GETFD is EBADF.
        closed.store(unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0, Relaxed);
    }
}

/// Makes this process the leader of a session whose terminal this is, and the terminal its streams. Whether that could be done.
///
/// # Safety
/// In a fresh copy of a process only.
pub(super) unsafe fn become_terminal(terminal: libc::c_int) -> bool {
    // SAFETY: system calls on numbers.
    unsafe {
        libc::setsid() >= 0
            && libc::ioctl(terminal, libc::TIOCSCTTY, 0) == 0
            && (0..3).all(|stream| libc::dup2(terminal, stream) == stream)
    }
}

/// Closes them again.
///
/// # Safety
/// In a fresh copy of a process only.
pub(super) unsafe fn close_again() {
    for (stream, closed) in (0..).zip(&CLOSED) {
        if closed.load(Relaxed) {
            // SAFETY: nothing of the copy uses the stream.
            unsafe { libc::close(stream) };
        }
    }
}
