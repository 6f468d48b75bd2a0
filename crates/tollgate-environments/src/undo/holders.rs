//! The processes that keep the mounts of a program: those in its mount namespace, and those in a copy of that namespace.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tollgate_os::process;

use super::group;

/// The time after SIGTERM.
const ASKED: Duration = Duration::from_millis(700);
/// The time after SIGKILL.
const KILLED: Duration = Duration::from_secs(5);
/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Ends the processes that see mounts below a directory with this prefix, SIGTERM first; not this process. Returns how many there were, and
/// whether all have ended.
///
/// The prefix names the program whose mounts they are. Where the first process of the system sees such a mount too it was made in the open,
/// every process has it, and none is ended.
pub(crate) fn end(prefix: &str) -> (usize, bool) {
    let own = process::own_pid();
    let is_open = sees("1", prefix);
    let found = || if is_open { Vec::new() } else { holders(prefix, own) };
    let first = found();
    if first.is_empty() {
        return (0, true);
    }
    for (signal, time) in [(libc::SIGTERM, ASKED), (libc::SIGKILL, KILLED)] {
        let began = Instant::now();
        let mut told: Vec<i32> = Vec::new();
        loop {
            let there = found();
            if there.is_empty() {
                return (first.len(), true);
            }
            // One that was forked meanwhile is told as well.
            for pid in there {
                if !told.contains(&pid) {
                    let _ = process::kill(pid, signal);
                    // One that is stopped takes no other signal.
                    let _ = process::kill(pid, libc::SIGCONT);
                    told.push(pid);
                }
            }
            if began.elapsed() >= time {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }
    (first.len(), found().is_empty())
}

/// The processes in a namespace of which any process sees such a mount: one with another root does not see it, and keeps it.
fn holders(prefix: &str, own: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let living = numbers.filter(|pid| group::is_alive(*pid));
    let mut by_namespace: HashMap<PathBuf, Vec<i32>> = HashMap::new();
    for pid in living {
        // One whose namespace may not be read is looked at by itself.
        let namespace =
            fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap_or_else(|_| pid.to_string().into());
        by_namespace.entry(namespace).or_default().push(pid);
    }
    let holding =
        by_namespace.into_values().filter(|pids| pids.iter().any(|pid| sees(&pid.to_string(), prefix)));
    holding.flatten().filter(|pid| *pid != own).collect()
}

/// Whether a process has a mount below such a directory (proc_pid_mountinfo(5)).
fn sees(pid: &str, prefix: &str) -> bool {
    let mounts = fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let needle = format!("/{prefix}");
    mounts.windows(needle.len()).any(|part| part == needle.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_such_a_mount_no_process_is_ended() {
        assert_eq!(end(".tollgate-ram-4194305-"), (0, true));
        assert!(holders(".tollgate-ram-4194305-", 0).is_empty());
        assert!(!sees("self", ".tollgate-ram-4194305-"));
    }
}
