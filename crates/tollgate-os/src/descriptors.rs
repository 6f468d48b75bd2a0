//! The table of descriptors of a thread.

use std::io;

/// Gives this thread a table of descriptors of its own, empty but for the first three.
///
/// Threads that share a table pay for it: while one thread alone has a table, the kernel finds a file in it without taking a reference
/// (fs/file.c, `__fget_light`).
///
/// # Errors
/// close_range(2) is refused, or older than Linux 5.9: the table is still shared.
///
/// # Safety
/// This thread uses no other descriptor that was opened before.
pub unsafe fn own_table() -> io::Result<()> {
    /// include/uapi/linux/close_range.h
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: what is closed are this thread's copies, which it does not use.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_thread_has_no_file_of_the_others() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let number = file.as_raw_fd();
        let of_thread = move || {
            let is_open = || Path::new(&format!("/proc/thread-self/fd/{number}")).exists();
            let before = is_open();
            // SAFETY: it opens what it uses.
            let outcome = unsafe { own_table() };
            (before, outcome.map(|()| is_open()))
        };
        let (before, after) = std::thread::spawn(of_thread).join().unwrap();
        assert!(before);
        match after {
            Ok(is_open) => assert!(!is_open),
            Err(error) => println!("skipped: {error}"),
        }
        assert!(Path::new(&format!("/proc/self/fd/{number}")).exists());
    }
}
