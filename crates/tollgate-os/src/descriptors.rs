//! The descriptor table of a thread.

use std::io;

/// Gives this thread its own copy of the descriptor table that it shares. Descriptors that were open stay open in both.
///
/// Sharing a table has a cost: while only one thread uses a table, the kernel looks up a file in it without taking a
/// reference (fs/file.c, `__fget_light`).
///
/// # Errors
/// unshare(2) is refused: the table is still shared.
pub fn copied_table() -> io::Result<()> {
    // SAFETY: each descriptor keeps its meaning.
    match unsafe { libc::unshare(libc::CLONE_FILES) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives this thread a table of its own that has only the first three descriptors.
///
/// # Errors
/// close_range(2) is refused, or the kernel is older than Linux 5.9: the table is still shared.
///
/// # Safety
/// This thread uses no other descriptor that was opened before.
pub unsafe fn own_table() -> io::Result<()> {
    /// include/uapi/linux/close_range.h
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: only this thread's copies are closed, and it does not use them.
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
    fn a_copy_keeps_what_was_open() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let number = file.as_raw_fd();
        let of_thread = move || {
            let outcome = copied_table();
            // SAFETY: fcntl(2) only reads a flag.
            let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
            // Closing the descriptor in this thread leaves it open in the others.
            outcome.map(|()| {
                // SAFETY: the descriptor is this thread's copy.
                (is_open, unsafe { libc::close(number) })
            })
        };
        match std::thread::spawn(of_thread).join().unwrap() {
            Ok(found) => assert_eq!(found, (true, 0)),
            Err(error) => return println!("skipped: {error}"),
        }
        assert!(file.metadata().is_ok());
    }

    #[test]
    fn a_thread_has_no_file_of_the_others() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let number = file.as_raw_fd();
        let of_thread = move || {
            let is_open = || Path::new(&format!("/proc/thread-self/fd/{number}")).exists();
            let before = is_open();
            // SAFETY: the thread opens the descriptors that it uses afterwards.
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
