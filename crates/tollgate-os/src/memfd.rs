//! Files in memory: memfd_create(2).

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
pub fn create_bounded(name: &str, bytes: u64) -> io::Result<File> {
    let made = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&made, bytes)?;
    rustix::fs::fcntl_add_seals(&made, SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(made.into())
}
