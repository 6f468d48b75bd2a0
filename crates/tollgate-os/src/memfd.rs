//! Files in memory: memfd_create(2).

use std::os::unix::fs::FileExt;
use std::{fs::File, io};

use rustix::fs::{MemfdFlags, SealFlags};

/// An empty file in memory, which a program that is started does not inherit. The name is for /proc/PID/fd.
///
/// # Errors
/// Those of memfd_create(2).
pub fn create(name: &str) -> io::Result<File> {
    Ok(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

/// One that can be executed, also under vm.memfd_noexec (MFD_EXEC, since Linux 6.3). It stays open in programs that are started.
///
/// # Errors
/// Those of memfd_create(2).
pub fn create_executable(name: &str) -> io::Result<File> {
    let made = rustix::fs::memfd_create(name, MemfdFlags::EXEC);
    Ok(made.or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::empty()))?.into())
}

/// A file in memory of a fixed size, in zeroes, which a program that is started does not inherit. A write beyond its end fails with
/// EPERM (F_SEAL_GROW of fcntl(2)).
///
/// # Errors
/// Those of memfd_create(2) and ftruncate(2).
fn create_bounded(name: &str, bytes: u64) -> io::Result<File> {
    let made = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&made, bytes)?;
    rustix::fs::fcntl_add_seals(&made, SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(made.into())
}

/// What a program says on its standard error: a file in memory that it writes to, of a fixed size, without a reader. A write of more fails
/// with EPERM, and so does each write of a program that sets O_APPEND; a hole takes no memory.
#[derive(Debug)]
pub struct Said(File);

impl Said {
    /// Nothing yet, and never more than these bytes.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and fcntl(2).
    pub fn new(most: u64) -> io::Result<Self> {
        create_bounded("said", most).map(Self)
    }

    /// The stream that the program is given.
    ///
    /// # Errors
    /// Those of dup(2).
    pub fn stream(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// The beginning of what was written so far, as far as it can be read.
    pub fn beginning(&self, most: usize) -> String {
        let mut bytes = vec![0; most];
        // The program's own writes go on behind: reading moves no position.
        let read = self.0.read_at(&mut bytes, 0).unwrap_or_default();
        // The file has its full size from the beginning, in zeroes.
        let written = bytes[..read].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        String::from_utf8_lossy(&bytes[..written]).into_owned()
    }
}
