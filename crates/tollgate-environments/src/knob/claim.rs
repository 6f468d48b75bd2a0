//! The claim to a setting: while a session has it, no other session changes that setting or takes its value for the original.
//!
//! It is a flock(2) lock on the setting's own file. So all names of a setting share one lock, the settings of two network
//! namespaces have two, and there is no lock file to leave over. The lock belongs to the open file, which the command and its
//! cleanup process share: the kernel releases it when both have ended. Each mount of proc has its own inodes (proc(5)):
//! sessions that see the setting through different mounts, such as those of two containers, do not see each other's locks.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock, major, minor};
use tollgate_model::text::{excerpt, plainly};

#[derive(Debug)]
pub(super) struct Claim(File);

impl Claim {
    /// Locks the file, or says which process has it locked.
    pub(super) fn take(path: &Path) -> Result<Self, String> {
        let file = File::options().write(true).open(path).map_err(|error| super::unwritable(&error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
            Ok(()) => Ok(Self(file)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(held(&file)),
            Err(error) => Err(format!("it cannot be locked: {}", plainly(&error))),
        }
    }
}

impl Drop for Claim {
    /// Unlocks every copy of the open file, since the value is back. If this process is killed instead, the cleanup process's
    /// copy keeps the lock.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl AsFd for Claim {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn held(file: &File) -> String {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let pid = file.metadata().ok().and_then(|of| holder(&locks, of.dev(), of.ino()));
    let Some(pid) = pid else {
        return "a process that is not visible here has it locked; only one session at a time may change a setting"
            .to_owned();
    };
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    match words.trim() {
        "" => format!(
            "process {pid} had it locked and was killed; its cleanup process restores the value, so try again in a moment"
        ),
        words => format!(
            "process {pid} ({}) has it locked; only one session at a time may change a setting",
            excerpt(words)
        ),
    }
}

/// Finds the process with a flock(2) lock on this file in /proc/locks (proc(5)):
/// `1: FLOCK  ADVISORY  WRITE 708 00:15:69100 0 EOF`.
fn holder(locks: &str, device: u64, inode: u64) -> Option<i32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields.as_slice() {
            [_, "FLOCK", _, _, pid, of, ..] if *of == file => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_by_the_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:15:69100 0 EOF\n2: FLOCK  ADVISORY  WRITE 708 00:15:69100 0 EOF\n\
            2: -> FLOCK  ADVISORY  WRITE 709 00:15:69100 0 EOF\n3: FLOCK  ADVISORY  READ 21 fe:00:9977874 0 EOF\n";
        assert_eq!(holder(locks, rustix::fs::makedev(0, 0x15), 69_100), Some(708));
        assert_eq!(holder(locks, rustix::fs::makedev(0xfe, 0), 9_977_874), Some(21));
        assert_eq!(holder(locks, rustix::fs::makedev(0, 0x15), 6_910), None);
    }
}
