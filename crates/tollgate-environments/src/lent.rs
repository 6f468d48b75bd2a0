//! A device in memory, or a file system on it, that is lent to a command. It goes with the command, however that ends.
//!
//! It is mounted in a mount namespace of this process, which the command shares: other processes do not see it. Processes that the command
//! left keep the mounts in use, so they are ended first. Where this process is killed, the guardian does both.
//!
//! Processes are found by the mounts of their namespace. One that the command left is not found, and not ended, where nothing of the device
//! is mounted there: brd without a file system, or what the command has unmounted. A device that stays open is an error, and goes with the
//! next run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use tollgate_os::{namespaces, process};

use crate::error::{EnvironmentError, bytes, plainly, unusable};
use crate::guardian::{Guardian, Promise};
use crate::prepared::Undo;
use crate::ram::{Ask, Contents, Disk, Driver, Memory, RamDisk, half_of, new_name};
use crate::undo::end_holders;

/// What is lent; gone when it is dropped.
#[derive(Debug)]
pub struct Lent {
    // In this order they are dropped.
    disk: Disk,
    promise: Promise,
    /// The name of its private directory.
    home: String,
    /// The mount namespace that this process left, and its name.
    outside: (File, PathBuf),
}

/// The mount namespace of this process (proc_pid_ns(5)).
const OWN_MOUNTS: &str = "/proc/self/ns/mnt";

impl Lent {
    /// The smallest size, in bytes.
    pub const SMALLEST: u64 = 1 << 20;

    /// Makes it, of `size` bytes or else of half of the available memory. The guardian is promised what undoes it first.
    ///
    /// # Errors
    /// A sentence; parts that were made are removed.
    pub fn make(
        contents: Contents,
        size: Option<u64>,
        memory: &Memory,
        guardian: &Guardian,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        RamDisk::check_privilege()?;
        let size = match size {
            None => half_of(memory)?,
            Some(size) => fitting(size, memory)?,
        };
        let home = new_name()?;
        let outside = File::open(OWN_MOUNTS)
            .and_then(|namespace| Ok((namespace, fs::read_link(OWN_MOUNTS)?)))
            .map_err(|error| unusable!("{OWN_MOUNTS} cannot be read: {}", plainly(error)))?;
        namespaces::own_mounts()
            .map_err(|error| unusable!("no mount namespace can be had: unshare(2): {}", plainly(error)))?;
        let undo = [Undo::Ram { pid: process::own_pid(), home: home.clone(), outside: outside.1.clone() }];
        let promise =
            guardian.promise(&undo).map_err(|error| unusable!("the guardian: {}", plainly(error)))?;
        let ask = Ask { contents, driver: Driver::Any, size, bound: size };
        let disk = Disk::make(&ask, &home, stop)?;
        Ok(Self { disk, promise, home, outside })
    }

    /// The directory of the file system, or the device where it has none.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// What it is: `brd`, `loop over tmpfs, direct I/O`, `tmpfs`.
    pub fn kind(&self) -> &'static str {
        self.disk.kind()
    }

    /// Ends the processes that the command left and takes it back. Returns how many they were.
    ///
    /// # Errors
    /// One that does not end; a device that is in use.
    pub fn take_back(self) -> Result<usize, EnvironmentError> {
        let (ended, all) = end_holders(&self.home, &self.outside.1);
        let Self { disk, promise, outside, .. } = self;
        // What the command mounted itself would keep the device in use: it goes with the namespace. Where that stays, an error says so.
        let _ = namespaces::enter_mounts(&outside.0);
        drop(disk);
        let undone = promise.keep();
        if !all {
            return Err(unusable!("a process that the command left does not end (it waits in the kernel)"));
        }
        undone.map(|()| ended)
    }
}

/// At most seven eighths of the available memory: the rest is for the command itself.
fn fitting(size: u64, memory: &Memory) -> Result<u64, EnvironmentError> {
    let most = memory.available - memory.available / 8;
    if size < Lent::SMALLEST {
        return Err(unusable!("{} are too few; a device has {} or more", bytes(size), bytes(Lent::SMALLEST)));
    }
    if size > most {
        return Err(unusable!(
            "{} are more than seven eighths of the memory that is available, {} ({})",
            bytes(size),
            bytes(memory.available),
            memory.by
        ));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_leaves_memory_for_the_command() {
        let memory = Memory { available: 800 << 20, by: "a test".to_owned() };
        assert_eq!(fitting(700 << 20, &memory), Ok(700 << 20));
        let why = fitting((700 << 20) + 1, &memory).unwrap_err().to_string();
        assert!(why.contains("800 MiB (a test)"), "{why}");
        let why = fitting(4096, &memory).unwrap_err().to_string();
        assert!(why.contains("1024 KiB or more"), "{why}");
    }
}
