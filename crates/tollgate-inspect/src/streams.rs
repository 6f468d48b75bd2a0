//! Whether the program was started with a standard output that can be written to.
//!
//! Rust's runtime opens /dev/null in place of a standard stream that is closed, before `main`, and takes a write to one that is open for
//! reading only as done. Both would lose a result without a word. So the stream is looked at before the runtime is there: the
//! loader calls the functions of `.init_array` first (System V ABI, "Initialization and Termination Functions").

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds pointers to functions of the C ABI, which is what this is. The function calls fcntl(2), which needs nothing
// of Rust's runtime, and stores to an atomic.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFL takes no pointer, and a descriptor that is closed is an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    CLOSED.store(flags == -1 || flags & libc::O_ACCMODE == libc::O_RDONLY, Relaxed);
}

/// Whether standard output was closed, or could not be written to, when the program was started.
pub fn standard_output_is_closed() -> bool {
    // A reference keeps the function in the program, whatever the linker thinks of its section.
    std::hint::black_box(&LOOK);
    CLOSED.load(Relaxed)
}
