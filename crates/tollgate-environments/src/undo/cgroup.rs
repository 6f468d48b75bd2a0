//! A cgroup, its processes and its descendants (cgroups(7)).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::Signal;
use tollgate_os::process;

const HOME: &str = "/sys/fs/cgroup";
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);
/// Cgroups are nested at most this deep.
const MAX_DEPTH: u32 = 32;

/// Kills its processes and removes it. Nothing outside the cgroup file systems is touched.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let own = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        own => own?,
    };
    // The first name below `HOME` is a v1 hierarchy or a v2 cgroup; the path of a cgroup has at least one.
    if !own.starts_with(HOME) || own == Path::new(HOME) || !own.join("cgroup.procs").exists() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let began = Instant::now();
    loop {
        // Cgroup v2 since Linux 5.14: kills all descendants at once, and forks cannot escape.
        if fs::write(own.join("cgroup.kill"), "1").is_err() {
            kill_below(&own, 0);
        }
        match remove_below(&own, 0) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) && began.elapsed() < PATIENCE => {
            }
            ended => return ended,
        }
        std::thread::sleep(LOOK);
    }
}

fn inner(group: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(group) else { return Vec::new() };
    let directories =
        entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path()).collect()
}

fn members(group: &Path) -> Vec<i32> {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // 0 stands for a process in another PID namespace.
    listed.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 1).collect()
}

fn kill_below(group: &Path, depth: u32) {
    for pid in members(group) {
        // The descriptor pins the process, so check only now that it is still a member.
        let Ok(own) = process::pidfd(pid) else { continue };
        if members(group).contains(&pid) {
            let _ = rustix::process::pidfd_send_signal(&own, Signal::KILL);
        }
    }
    if depth < MAX_DEPTH {
        inner(group).iter().for_each(|inner| kill_below(inner, depth + 1));
    }
}

fn remove_below(group: &Path, depth: u32) -> io::Result<()> {
    if depth < MAX_DEPTH {
        inner(group).iter().try_for_each(|inner| remove_below(inner, depth + 1))?;
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        ended => ended,
    }
}
