//! Processes that keep a program's mounts in use: those in its mount namespace, and those in a copy of that namespace.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};
use tollgate_os::process;

use crate::undo::group;

/// Time to end after SIGTERM.
const ASKED: Duration = Duration::from_millis(700);
/// Time to end after SIGKILL.
const KILLED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Ends the processes that have mounts below a private directory of this name, with SIGTERM first; not this process. Returns
/// how many there were, and whether all have ended.
///
/// Processes in the namespace `outside` are spared: a mount of this name there was made openly, while the program's own
/// mounts are in another namespace.
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
            // A process that was forked meanwhile gets the signal too.
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

/// Returns whether processes in another mount namespace, which this process does not see, have such mounts. Removing the
/// directory would unmount them there (Linux since 3.18, d_invalidate), and the code that ends these processes could no
/// longer find them.
pub(crate) fn are_elsewhere(home: &str) -> bool {
    !sees("self", home) && !holders(home, Path::new(""), process::own_pid()).is_empty()
}

struct Holder {
    pid: i32,
    namespace: PathBuf,
    /// Whether the process itself sees the mount. A process with another root does not, but keeps the mount in use.
    sees: bool,
}

impl Holder {
    fn tell(&self, home: &str, signal: Signal) {
        let is_same =
            || namespace_of(self.pid) == self.namespace && (!self.sees || sees(&self.pid.to_string(), home));
        match process::pidfd(self.pid) {
            // The descriptor pins the process, so check only now that it is still such a process.
            Ok(held) => {
                if is_same() {
                    let _ = pidfd_send_signal(&held, signal);
                    // A stopped process reacts to no other signal.
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

/// All processes of each namespace in which at least one process sees such a mount.
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

/// Mount namespace of a process; its process ID if the link is not readable, so that it counts as a namespace of its own.
fn namespace_of(pid: i32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/ns/mnt")).unwrap_or_else(|_| pid.to_string().into())
}

/// Returns whether a process has a mount below such a directory (proc_pid_mountinfo(5)).
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

    /// A process in its own mount namespace, with a mount below this directory; `None` if there can be none here.
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
        // Named like the directory of a program in another PID namespace.
        let [ours, theirs] =
            ["0123456789abcdef", "0123456789abcdee"].map(|random| format!(".tollgate-ram-4194305-{random}"));
        let Some(mut own) = holder(&place.path().join(&ours)) else { return };
        let Some(mut other) = holder(&place.path().join(&theirs)) else { return };
        let pid_of = |child: &Program| child.0.id().cast_signed();
        // All processes see a mount that was made openly, so it ends none of them.
        assert_eq!(end(&ours, &namespace_of(pid_of(&own))), (0, true));
        assert!(own.0.try_wait().unwrap().is_none());
        // Namespace and mount are checked again before a process gets a signal.
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
