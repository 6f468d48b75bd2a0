//! Files in memory: memfd_create(2).

use std::os::unix::fs::FileExt;
use std::{fs::File, io};

use rustix::fs::{MemfdFlags, SealFlags};

/// Makes an empty file in memory that started programs do not inherit. The name appears in /proc/PID/fd.
///
/// # Errors
/// Those of memfd_create(2).
pub fn create(name: &str) -> io::Result<File> {
    Ok(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// Makes a file that can be executed, even if vm.memfd_noexec is set (MFD_EXEC, since Linux 6.3). It stays open in started
/// programs.
///
/// # Errors
/// Those of memfd_create(2).
pub fn create_executable(name: &str) -> io::Result<File> {
    let made = rustix::fs::memfd_create(name, MemfdFlags::EXEC);
    Ok(made.or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::empty()))?.into())
}

/// Makes a zero-filled file in memory of a fixed size that started programs do not inherit. A write beyond its end fails
/// with EPERM (F_SEAL_GROW of fcntl(2)).
///
/// # Errors
/// Those of memfd_create(2) and ftruncate(2).
pub fn create_bounded(name: &str, bytes: u64) -> io::Result<File> {
    let made = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&made, bytes)?;
    rustix::fs::fcntl_add_seals(&made, SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(made.into())
}

/// The standard error of a program: a file in memory of a fixed size, which needs no reader. A write beyond its end fails
/// with EPERM, and so does each write of a program that sets O_APPEND. A hole takes no memory.
#[derive(Debug)]
pub struct Said(File);

impl Said {
    /// Makes an empty one of at most `most` bytes.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and fcntl(2).
    pub fn new(most: u64) -> io::Result<Self> {
        create_bounded("said", most).map(Self)
    }

    /// Returns the stream to give to the program.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn stream(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// Returns the first `most` bytes written so far, as far as they can be read.
    pub fn beginning(&self, most: usize) -> String {
        let mut bytes = vec![0; most];
        let read = self.0.read_at(&mut bytes, 0).unwrap_or_default();
        // The file has its full size from the start, filled with zeros.
        let written = bytes[..read].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        String::from_utf8_lossy(&bytes[..written]).into_owned()
    }
}
