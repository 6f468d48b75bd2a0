//! A control group, its processes and the groups beneath it (cgroups(7)).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::Signal;
use tollgate_os::process;

/// Where control groups are mounted.
const HOME: &str = "/sys/fs/cgroup";
/// The time in which its processes die.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(2);
/// Groups lie in one another to this depth at the most.
const MAX_DEPTH: u32 = 32;

/// Kills what is in it and removes it. Nothing outside of the file systems of control groups is touched.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let own = match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        own => own?,
    };
    // The first name below is a hierarchy of version 1 or a group of version 2; a group has more.
    if !own.starts_with(HOME) || own == Path::new(HOME) || !own.join("cgroup.procs").exists() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let began = Instant::now();
    loop {
        // Version 2 since Linux 5.14: all below at once, and forks cannot outrun it.
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
    // 0 stands for a process of another PID namespace.
    listed.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 1).collect()
}

fn kill_below(group: &Path, depth: u32) {
    for pid in members(group) {
        // The descriptor holds on to the process; only then it is asked whether it is a member still.
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
