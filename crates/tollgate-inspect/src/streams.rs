//! Whether the program was started with a writable standard output.
//!
//! Before `main`, Rust's runtime opens /dev/null in place of a closed standard stream, and it treats a write to a read-only one
//! as done. Both would silently lose a result. So the stream is checked before the runtime starts: the loader calls the
//! functions of `.init_array` first (System V ABI, "Initialization and Termination Functions").

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds pointers to functions of the C ABI, and this is one. The function calls fcntl(2), which does not
// need Rust's runtime, and stores to an atomic.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFL takes no pointer, and a closed descriptor is an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    CLOSED.store(flags == -1 || flags & libc::O_ACCMODE == libc::O_RDONLY, Relaxed);
}

/// Returns whether standard output was closed or not writable when the program was started.
pub fn standard_output_is_closed() -> bool {
    // A reference keeps the linker from discarding the function.
    std::hint::black_box(&LOOK);
    CLOSED.load(Relaxed)
}
