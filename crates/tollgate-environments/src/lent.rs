//! A device in memory, or a file system on it, that is lent to a command. It is removed when the command ends in any way.
//!
//! It is mounted in a mount namespace of this process, which the command shares: other processes do not see it. Processes that
//! the command left running keep the mounts in use, so they are ended first. If this process is killed, the cleanup process does
//! both.
//!
//! Processes are found by the mounts of their namespace. One that the command left is neither found nor ended if nothing of the
//! device is mounted there: brd without a file system, or a mount that the command has unmounted. A device that stays open is an
//! error, and the next run removes it.
//!
//! A device may be larger than the memory, since blocks that were never written take none. The command's processes are ended
//! before the written blocks fill the memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tollgate_os::{namespaces, process};

use crate::cleanup::{Cleanup, Promise};
use crate::device::taken;
use crate::error::{EnvironmentError, bytes, plainly, unusable};
use crate::holders;
use crate::prepared::Undo;
use crate::ram::{Ask, Contents, Disk, Driver, Memory, RamDisk, half_of, new_name};

/// A device or file system that is lent. Dropping it removes it.
#[derive(Debug)]
pub struct Lent {
    // Fields are dropped in this order.
    disk: Disk,
    promise: Promise,
    home: String,
    /// The mount namespace that this process left, and its name.
    outside: (File, PathBuf),
    size: u64,
    /// For a device that is larger than the memory.
    watch: Option<Watch>,
}

/// How the command's processes ended.
#[derive(Debug)]
pub struct TakenBack {
    /// Number of processes that the command left running.
    pub ended: usize,
    /// Whether they were ended because nearly all of the memory that the device may take was written.
    pub was_full: bool,
}

/// State of a device after its command has ended.
#[derive(Debug)]
pub struct Account {
    /// Size of the device in bytes.
    pub size: u64,
    /// How long mkfs took; `None` if no file system was made.
    pub made_in: Option<Duration>,
    /// Bytes of memory that it takes.
    pub taken: Option<u64>,
    /// Whether it is larger than the memory.
    pub is_beyond_memory: bool,
}

/// Watches the memory that a device takes, and ends its processes before it reaches the limit.
#[derive(Debug)]
struct Watch {
    ended: Arc<AtomicBool>,
    is_full: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Interval between checks. Memory is written at some GiB/s, and an eighth of the available memory is left free.
    const LOOK: Duration = Duration::from_millis(20);

    fn begin(file: &File, bound: u64, home: String, outside: PathBuf) -> std::io::Result<Self> {
        let (ended, is_full) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (its_end, fills, file) = (ended.clone(), is_full.clone(), file.try_clone()?);
        let look = move || {
            while !its_end.load(Ordering::Relaxed) {
                if taken(&file).is_some_and(|taken| taken > bound - bound / 16) {
                    fills.store(true, Ordering::Relaxed);
                    holders::end(&home, &outside);
                    return;
                }
                thread::sleep(Self::LOOK);
            }
        };
        let thread = thread::Builder::new().name("tollgate-full".into()).spawn(look)?;
        Ok(Self { ended, is_full, thread })
    }

    fn end(self) -> bool {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        self.is_full.load(Ordering::Relaxed)
    }
}

/// Mount namespace of this process (proc_pid_ns(5)).
const OWN_MOUNTS: &str = "/proc/self/ns/mnt";

impl Lent {
    /// Smallest size, in bytes.
    pub const SMALLEST: u64 = 1 << 20;

    /// Makes it with `size` bytes, or half of the available memory. The cleanup process is promised what undoes it first.
    ///
    /// # Errors
    /// A sentence; parts that were made are removed.
    pub fn make(
        contents: Contents,
        size: Option<u64>,
        memory: &Memory,
        cleanup: &Cleanup,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, EnvironmentError> {
        RamDisk::check_privilege()?;
        let size = size.map_or_else(|| half_of(memory), Ok)?;
        let bound = bound(size, &contents, memory)?;
        let home = new_name()?;
        let outside = File::open(OWN_MOUNTS)
            .and_then(|namespace| Ok((namespace, fs::read_link(OWN_MOUNTS)?)))
            .map_err(|error| unusable!("{OWN_MOUNTS} cannot be read: {}", plainly(error)))?;
        namespaces::own_mounts().map_err(|error| {
            unusable!("a mount namespace cannot be created: unshare(2): {}", plainly(error))
        })?;
        let undo = [Undo::Ram { pid: process::own_pid(), home: home.clone(), outside: outside.1.clone() }];
        let promise =
            cleanup.promise(&undo).map_err(|error| unusable!("the cleanup process: {}", plainly(error)))?;
        // brd has no limit.
        let driver = if bound < size { Driver::Loop } else { Driver::Any };
        let disk = Disk::make(&Ask { contents, driver, size, bound }, &home, stop)?;
        let watch = match disk.file().filter(|_| bound < size) {
            None => None,
            Some(file) => Some(
                Watch::begin(file, bound, home.clone(), outside.1.clone())
                    .map_err(|error| unusable!("its memory cannot be watched: {}", plainly(error)))?,
            ),
        };
        Ok(Self { disk, promise, home, outside, size, watch })
    }

    /// Returns what it takes now.
    pub fn account(&self) -> Account {
        self.disk.sync();
        Account {
            size: self.size,
            made_in: self.disk.made_in(),
            taken: self.disk.taken().0,
            is_beyond_memory: self.watch.is_some(),
        }
    }

    /// Directory of the file system, or the device if it has none.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The kind of device: `brd`, `loop over tmpfs, direct I/O`, `tmpfs`.
    pub fn kind(&self) -> &'static str {
        self.disk.kind()
    }

    /// Ends the processes that the command left and removes the device.
    ///
    /// # Errors
    /// A process does not end, or the device is in use.
    pub fn take_back(mut self) -> Result<TakenBack, EnvironmentError> {
        let was_full = self.watch.take().is_some_and(Watch::end);
        let (ended, all) = holders::end(&self.home, &self.outside.1);
        let Self { disk, promise, outside, .. } = self;
        // The command's own mounts would keep the device in use; they end with the namespace. If not, an error says so.
        let _ = namespaces::enter_mounts(&outside.0);
        drop(disk);
        let undone = promise.keep();
        if !all {
            return Err(unusable!("a process that the command left does not end (it waits in the kernel)"));
        }
        undone.map(|()| TakenBack { ended, was_full })
    }
}

/// Memory that it may take: at most seven eighths of what is available, since the command needs the rest. The device may be larger.
fn bound(size: u64, contents: &Contents, memory: &Memory) -> Result<u64, EnvironmentError> {
    let most = memory.available - memory.available / 8;
    if size < Lent::SMALLEST {
        return Err(unusable!(
            "{} is too small; a device has {} or more",
            bytes(size),
            bytes(Lent::SMALLEST)
        ));
    }
    if size > most && *contents == Contents::Tmpfs {
        return Err(unusable!(
            "a tmpfs cannot be larger than the memory: {} is more than seven eighths of the available memory, {} ({})",
            bytes(size),
            bytes(memory.available),
            memory.by
        ));
    }
    Ok(size.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fills_the_memory_ends() {
        // Files of other file systems get their blocks later, or compressed.
        let file = tollgate_os::memfd::create("tollgate-full").unwrap();
        let watch =
            |bound| Watch::begin(&file, bound, "no-mount-has-this-name".into(), PathBuf::new()).unwrap();
        let idle = watch(1 << 20);
        thread::sleep(3 * Watch::LOOK);
        assert!(!idle.end());
        let full = watch(1 << 20);
        std::io::Write::write_all(&mut &file, &vec![1; (1 << 20) - 4096]).unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(120);
        while !full.is_full.load(Ordering::Relaxed) && std::time::Instant::now() < until {
            thread::sleep(Watch::LOOK);
        }
        assert!(full.end());
    }

    #[test]
    fn a_size_leaves_memory_for_the_command() {
        let memory = Memory { available: 800 << 20, by: "a test".to_owned() };
        let bound = |size, contents| bound(size, &contents, &memory).map_err(|error| error.to_string());
        assert_eq!(bound(600 << 20, Contents::Nothing), Ok(600 << 20));
        assert_eq!(bound(1 << 50, Contents::Nothing), Ok(700 << 20));
        let why = bound((700 << 20) + 1, Contents::Tmpfs).unwrap_err();
        assert!(why.contains("800 MiB (a test)"), "{why}");
        let why = bound(4096, Contents::Nothing).unwrap_err();
        assert!(why.contains("1024 KiB or more"), "{why}");
    }
}
