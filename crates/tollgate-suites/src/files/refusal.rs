use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use tollgate_model::text::plainly;

use crate::prelude::*;

/// Returns the refusal of `what`, such as `write(2)`: its error by name and its meaning for files. An error that does
/// not come from the environment is a failure.
pub(crate) fn refused(what: &str, error: &io::Error) -> Refusal {
    let sentence = match known(error).and_then(|(.., meaning)| *meaning) {
        Some(meaning) => format!("{what} is refused: {meaning}: {}", named(error)),
        None => format!("{what} is refused: {}", plainly(error)),
    };
    match error.raw_os_error() {
        Some(libc::EIO | libc::ESTALE | libc::ETIMEDOUT | libc::EMFILE | libc::ENFILE | libc::ENOMEM) => {
            Refusal::Fail(sentence)
        }
        _ => Refusal::Skip(sentence),
    }
}

/// Common errors of file calls: POSIX text and name, and the cause if the name does not tell it.
const ERRORS: [(i32, &str, Option<&str>); 13] = [
    (libc::ENOSPC, "No space left on device (ENOSPC)", Some("the file system is full")),
    (libc::EDQUOT, "Disk quota exceeded (EDQUOT)", Some("the user's quota of the file system is used up")),
    (libc::EROFS, "Read-only file system (EROFS)", Some("the file system is mounted read-only")),
    (
        libc::EFBIG,
        "File too large (EFBIG)",
        Some("the file would be longer than RLIMIT_FSIZE or the file system allows"),
    ),
    (libc::EIO, "Input/output error (EIO)", Some("the storage failed to read or write")),
    (libc::EINVAL, "Invalid argument (EINVAL)", None),
    (libc::EOPNOTSUPP, "Operation not supported (EOPNOTSUPP)", None),
    (libc::EFAULT, "Bad address (EFAULT)", None),
    (libc::ENOSYS, "Function not implemented (ENOSYS)", None),
    (libc::EPERM, "Operation not permitted (EPERM)", None),
    (libc::EACCES, "Permission denied (EACCES)", None),
    (
        libc::ESTALE,
        "Stale file handle (ESTALE)",
        Some("the network file system's server no longer knows the file"),
    ),
    (
        libc::ETIMEDOUT,
        "Connection timed out (ETIMEDOUT)",
        Some("the network file system's server does not answer"),
    ),
];

fn known(error: &io::Error) -> Option<&'static (i32, &'static str, Option<&'static str>)> {
    ERRORS.iter().find(|(number, ..)| Some(*number) == error.raw_os_error())
}

/// Returns the POSIX text and name of common errors of file calls, such as `Invalid argument (EINVAL)`.
pub(super) fn named(error: &io::Error) -> String {
    known(error).map_or_else(|| plainly(error), |(_, name, _)| (*name).to_owned())
}

#[inline(always)]
pub(super) fn pread(file: &OwnedFd, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let (descriptor, offset) = (file.as_raw_fd(), offset as libc::off_t);
    // SAFETY: the buffer is valid for writing its own length.
    checked(unsafe { libc::pread(descriptor, bytes.as_mut_ptr().cast(), bytes.len(), offset) } as i64)
}

pub(super) fn whole(what: &str, outcome: io::Result<usize>, asked: usize) -> Result<()> {
    match outcome {
        Ok(moved) if moved == asked => Ok(()),
        Ok(moved) => Err(fail!("{what} moved {moved} of {asked} bytes")),
        Err(error) => Err(refused(what, &error)),
    }
}

pub(super) fn done(what: &str, outcome: io::Result<usize>) -> Result<()> {
    outcome.map(|_| ()).map_err(|error| refused(what, &error))
}

pub(super) const FILE: Benchmark = Benchmark { absence: &[KILLED_BY_FILTER], uses_files: true, ..PLAIN };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named_and_explained() {
        let of = |number| refused("write(2)", &io::Error::from_raw_os_error(number));
        let cases = [
            (libc::ENOSPC, "the file system is full: No space left on device (ENOSPC)"),
            (libc::EDQUOT, "the user's quota of the file system is used up: Disk quota exceeded (EDQUOT)"),
            (libc::EROFS, "the file system is mounted read-only: Read-only file system (EROFS)"),
            (
                libc::EFBIG,
                "the file would be longer than RLIMIT_FSIZE or the file system allows: File too large (EFBIG)",
            ),
        ];
        for (number, sentence) in cases {
            assert_eq!(of(number), skip!("write(2) is refused: {sentence}"));
        }
        assert!(matches!(of(libc::EIO), Refusal::Fail(why) if why.contains("EIO")));
        assert_eq!(of(libc::ENOENT), skip!("write(2) is refused: No such file or directory"));
    }

    #[test]
    fn a_short_read_is_no_read() {
        assert_eq!(whole("pread(2)", Ok(100), 4096), Err(fail!("pread(2) moved 100 of 4096 bytes")));
        assert_eq!(whole("pread(2)", Ok(4096), 4096), Ok(()));
    }
}
