//! The private directories of devices in memory, and what killed programs left in them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::mount::{UnmountFlags, unmount};
use tollgate_model::Fact;
use tollgate_os::private::{PrivateDirectory, TrustedDirectory};
use tollgate_os::{process, temporary};

use crate::device::{BRD, LoadedMarks, Loop, is_brd_there};
use crate::directory::{distrusted, unmade};
use crate::error::{EnvironmentError, plainly, unusable};
use crate::holders;

/// Prefix of the private directories. It differs from others since these are removed with more care.
const PREFIX: &str = ".tollgate-ram-";
/// The first of these that is writable has the private directories.
const PARENTS: [&str; 2] = ["/run", "/tmp"];
/// Mount point of the tmpfs that holds the file, in the private directory.
pub(super) const MEMORY: &str = "memory";
/// Mount point of the file system, in the private directory.
pub(super) const FILES: &str = "files";

const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);

/// Removes what killed programs left outside namespaces: mounts, the module brd, loop devices that were added, directories. Only
/// root can have made any.
pub fn clean() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for place in PARENTS.into_iter().filter_map(|under| TrustedDirectory::open(Path::new(under)).ok()) {
        for home in PrivateDirectory::left(&place, PREFIX) {
            let name = home.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The program is being killed: its cleanup process ends the processes that keep the mounts, then removes this.
            if holders::are_elsewhere(&name) {
                home.leave();
                continue;
            }
            for name in [FILES, MEMORY] {
                // Usually not a mount point. A directory in use is left to the next run.
                let _ = unmount(home.path().join(name), UnmountFlags::NOFOLLOW);
            }
            let removed = Loop::remove_noted(&home);
            let unloaded = LoadedMarks::read(&home).map_or(Ok(()), |record| record.unload());
            if removed.and(unloaded).is_err() {
                home.leave();
            }
        }
    }
}

/// Returns a unique name for a private directory, even if a process in another PID namespace has the same number.
pub(crate) fn new_name() -> Result<String, EnvironmentError> {
    temporary::new_name(PREFIX).map_err(|error| EnvironmentError::new("getrandom(2)", error))
}

/// Removes the private directory of this name that process `pid` left, once that process has ended: a killed process closes
/// its files one by one, and the lock of a directory can be the last. Nothing is left of this process after its disks are
/// dropped. Fails if the directory stays because a mount there is in use.
pub(crate) fn clean_after(pid: i32, name: &str) -> Result<(), EnvironmentError> {
    let left = || {
        let paths = PARENTS.map(|under| Path::new(under).join(name));
        paths.into_iter().find(|path| path.symlink_metadata().is_ok())
    };
    for _ in 0..LOOKS {
        if left().is_none() || pid == process::own_pid() {
            break;
        }
        clean();
        std::thread::sleep(LOOK);
    }
    left().map_or(Ok(()), |path| Err(unusable!("{} is in use", path.display())))
}

/// Describes what exists of devices in memory and their mounts: `nothing` if all are gone.
pub fn left() -> Fact {
    const MOUNTS: &str = "/proc/self/mounts";
    let by = format!("{MOUNTS} and /sys/module");
    let mounts = match fs::read_to_string(MOUNTS) {
        Ok(mounts) => mounts,
        Err(error) => return Fact::unreadable(format!("{MOUNTS}: {}", plainly(error))),
    };
    let mounted = mounts.lines().filter(|line| line.contains(PREFIX)).map(str::to_owned);
    let module = is_brd_there().then(|| format!("the module {BRD}"));
    let left: Vec<String> = mounted.chain(module).collect();
    if left.is_empty() { Fact::known("nothing", by) } else { Fact::known(left.join("; "), by) }
}

/// Makes a private directory of this name, where root has files that last until the next boot.
pub(super) fn home(name: &str) -> Result<PrivateDirectory, EnvironmentError> {
    let [first, second] = PARENTS.map(Path::new);
    let make = |under: &Path| {
        let place = TrustedDirectory::open(under).map_err(|error| distrusted(under, &error))?;
        PrivateDirectory::named(&place, name.to_owned()).map_err(|error| unmade(under, error))
    };
    make(first).or_else(|_| make(second))
}
