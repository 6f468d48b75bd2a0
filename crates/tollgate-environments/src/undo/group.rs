//! Ends a process group.

use std::fs;
use std::time::{Duration, Instant};

use tollgate_os::process;

/// Time for a group to end by itself: its standard input has ended, which makes an agent exit.
const LEAVING: Duration = Duration::from_millis(300);
/// Time after SIGTERM: container runtimes pass it on and clean up.
const ASKED: Duration = Duration::from_millis(700);
/// Time after SIGKILL: a process in uninterruptible sleep dies only when that ends.
const KILLED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(2);

/// Fields of /proc/PID/stat.
struct Process {
    state: u8,
    group: i32,
    started: u64,
}

impl Process {
    fn read(pid: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name, which is the second field, may contain spaces and parentheses (proc_pid_stat(5)).
    fn parse(stat: &str) -> Option<Self> {
        let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            state: *rest.first()?.as_bytes().first()?,
            group: rest.get(2)?.parse().ok()?,
            started: rest.get(19)?.parse().ok()?,
        })
    }

    fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Returns whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    Process::read(&pid.to_string()).is_some_and(|process| process.is_alive())
}

/// When a process was started, in clock ticks after boot; 0 if /proc does not say.
pub(crate) fn started(pid: i32) -> u64 {
    Process::read(&pid.to_string()).map_or(0, |process| process.started)
}

/// Returns whether the number still belongs to the group. While a group has members, no other process gets its number
/// (`struct pid` in kernel/pid.c), so a leader of another age means that the group is gone.
fn is_same(leader: i32, begun: u64) -> bool {
    begun == 0 || Process::read(&leader.to_string()).is_none_or(|now| now.started == begun)
}

/// Waits for the end of the group that this process leads, and kills what remains. Returns false if a member stays.
///
/// A list of processes may miss one that is being forked. After SIGKILL to the whole group, no member can fork
/// (`copy_process` in kernel/fork.c), so it is always sent unless the group is gone.
pub(super) fn end(leader: i32, begun: u64) -> bool {
    // Numbers up to 1 are not groups, or mean all processes (kill(2)).
    if leader <= 1 {
        return true;
    }
    for (signal, time) in [(None, LEAVING), (Some(libc::SIGTERM), ASKED), (Some(libc::SIGKILL), KILLED)] {
        if let Some(signal) = signal
            && is_same(leader, begun)
        {
            let _ = process::kill(-leader, signal);
            // A stopped process reacts to no other signal.
            let _ = process::kill(-leader, libc::SIGCONT);
        }
        let began = Instant::now();
        while began.elapsed() < time {
            if is_gone(leader, begun) {
                return true;
            }
            if !any_alive(leader) {
                break;
            }
            std::thread::sleep(LOOK);
        }
    }
    !any_alive(leader)
}

/// Returns whether the group has no more members. Reaps those that are children of this process.
fn is_gone(leader: i32, begun: u64) -> bool {
    while let Ok(Some(_)) = process::wait4(-leader, libc::WNOHANG) {}
    let gone = process::kill(-leader, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH));
    gone || !is_same(leader, begun)
}

/// Returns whether a member is more than a zombie, which only its parent can reap.
pub(super) fn any_alive(group: i32) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return true };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    pids.filter_map(|pid| Process::read(&pid)).any(|process| process.group == group && process.is_alive())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest() {
        let stat = "12 (a) R 1 (b)) S 1 77 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 10";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.state, process.group, process.started), (b'S', 77, 4242));
        assert!(Process::parse("").is_none() && Process::parse("1 (a) S 1").is_none());
        assert!(started(process::own_pid()) > 0);
    }
}
