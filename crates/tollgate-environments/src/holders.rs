//! The processes that keep the mounts of a program: those in its mount namespace, and those in a copy of that namespace.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};
use tollgate_os::process;

use crate::undo::group;

/// The time after SIGTERM.
const ASKED: Duration = Duration::from_millis(700);
/// The time after SIGKILL.
const KILLED: Duration = Duration::from_secs(5);
/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Ends the processes that keep mounts below a private directory with this name, SIGTERM first; not this process. Returns how many there
/// were, and whether all have ended.
///
/// No process in the namespace `outside` is ended: a mount of this name there was made in the open, and the program's own are in another.
pub(crate) fn end(home: &str, outside: &Path) -> (usize, bool) {
    let own = process::own_pid();
    let found = || holders(home, outside, own);
    let first = found();
    if first.is_empty() {
        return (0, true);
    }
    for (signal, time) in [(Signal::TERM, ASKED), (Signal::KILL, KILLED)] {
        let began = Instant::now();
        let mut told: Vec<i32> = Vec::new();
        loop {
            let there = found();
            if there.is_empty() {
                return (first.len(), true);
            }
            // One that was forked meanwhile is told as well.
            for holder in there {
                if !told.contains(&holder.pid) {
                    holder.tell(home, signal);
                    told.push(holder.pid);
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

/// Whether processes in another mount namespace keep such mounts, which this process does not see. To remove the directory would unmount
/// them there (Linux since 3.18, d_invalidate), and who ends these processes would not find them any more.
pub(crate) fn are_elsewhere(home: &str) -> bool {
    !sees("self", home) && !holders(home, Path::new(""), process::own_pid()).is_empty()
}

/// A process in a mount namespace with such a mount.
struct Holder {
    pid: i32,
    /// As [`namespace_of`] has it.
    namespace: PathBuf,
    /// Whether it sees the mount itself: one with another root does not see it, and keeps it.
    sees: bool,
}

impl Holder {
    fn tell(&self, home: &str, signal: Signal) {
        let is_same =
            || namespace_of(self.pid) == self.namespace && (!self.sees || sees(&self.pid.to_string(), home));
        match process::pidfd(self.pid) {
            // The descriptor holds on to the process; only then it is asked whether that is a holder still.
            Ok(held) => {
                if is_same() {
                    let _ = pidfd_send_signal(&held, signal);
                    // One that is stopped takes no other signal.
                    let _ = pidfd_send_signal(&held, Signal::CONT);
                }
            }
            // Before Linux 5.3.
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) && is_same() => {
                let _ = process::kill(self.pid, signal.as_raw());
                let _ = process::kill(self.pid, libc::SIGCONT);
            }
            Err(_) => {}
        }
    }
}

/// The processes in a namespace of which any process sees such a mount.
fn holders(home: &str, outside: &Path, own: i32) -> Vec<Holder> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let living = numbers.filter(|pid| group::is_alive(*pid));
    let mut by_namespace: HashMap<PathBuf, Vec<Holder>> = HashMap::new();
    for pid in living {
        let namespace = namespace_of(pid);
        if namespace != outside {
            let holder = Holder { pid, namespace: namespace.clone(), sees: sees(&pid.to_string(), home) };
            by_namespace.entry(namespace).or_default().push(holder);
        }
    }
    let holding = by_namespace.into_values().filter(|there| there.iter().any(|holder| holder.sees));
    holding.flatten().filter(|holder| holder.pid != own).collect()
}

/// The mount namespace of a process; its number, where that may not be read: it is looked at by itself.
fn namespace_of(pid: i32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap_or_else(|_| pid.to_string().into())
}

/// Whether a process has a mount below such a directory (proc_pid_mountinfo(5)).
fn sees(pid: &str, home: &str) -> bool {
    let mounts = fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
    let needle = format!("/{home}/");
    mounts.windows(needle.len()).any(|part| part == needle.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use tollgate_os::process::Program;

    use super::*;

    #[test]
    fn without_such_a_mount_no_process_is_ended() {
        let home = ".tollgate-ram-4194305-00000000000000ff";
        assert_eq!(end(home, Path::new("")), (0, true));
        assert!(holders(home, Path::new(""), 0).is_empty());
        assert!(!sees("self", home));
    }

    /// A process in a mount namespace of its own, with a mount below this directory; None where none can be had.
    fn holder(home: &Path) -> Option<Program> {
        let files = home.join("files");
        fs::create_dir_all(&files).unwrap();
        let script = r#"mount -t tmpfs tollgate "$0" && echo mounted && exec 1>&- && exec sleep 600"#;
        let mut child = Command::new("unshare")
            .args(["--mount", "sh", "-c", script])
            .arg(&files)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        if said == "mounted\n" {
            return Some(Program(child));
        }
        child.wait().unwrap();
        println!(
            "skipped: no file system can be mounted in a mount namespace here (root, unshare(1), mount(8))"
        );
        None
    }

    #[test]
    fn of_programs_with_the_same_number_one_s_holders_are_ended() {
        let place = tempfile::tempdir().unwrap();
        // As a program of another PID namespace has it.
        let [ours, theirs] =
            ["0123456789abcdef", "0123456789abcdee"].map(|random| format!(".tollgate-ram-4194305-{random}"));
        let Some(mut own) = holder(&place.path().join(&ours)) else { return };
        let Some(mut other) = holder(&place.path().join(&theirs)) else { return };
        let pid_of = |child: &Program| child.0.id().cast_signed();
        // What is mounted in the open is seen by every process, and ends none.
        assert_eq!(end(&ours, &namespace_of(pid_of(&own))), (0, true));
        assert!(own.0.try_wait().unwrap().is_none());
        // The namespace and the mount are looked at again before a process is told.
        let stale = Holder { pid: pid_of(&other), namespace: namespace_of(pid_of(&own)), sees: true };
        stale.tell(&ours, Signal::KILL);
        assert_eq!(end(&ours, Path::new("")), (1, true));
        assert!(!own.0.wait().unwrap().success());
        assert!(other.0.try_wait().unwrap().is_none());
        assert!(!are_elsewhere(&ours) && are_elsewhere(&theirs));
        assert_eq!(end(&theirs, Path::new("")), (1, true));
        assert!(!are_elsewhere(&theirs));
        other.0.wait().unwrap();
    }
}
