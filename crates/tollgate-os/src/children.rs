//! The children of this process, and which of them it had before it began.
//!
//! execve(2) keeps the children of a process. `bash -c 'sleep 300 & exec tollgate …'` and the entry points of containers
//! hand over children that way. This program must neither wait for such a child nor kill it.

use std::{fs, io};

use rustix::process::{child_subreaper, getpid, set_child_subreaper};

use crate::process::peek;

const ANY_EVENT: libc::c_int = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG;
/// One past the highest process number of the kernel (`PID_MAX_LIMIT` of include/linux/threads.h).
const MOST: libc::pid_t = 4 << 20;

/// The children that this process had at one moment.
///
/// The numbers stay valid: the kernel does not reuse the number of a child until it has been waited for.
#[derive(Debug, Clone, Default)]
pub struct Inherited {
    pids: Vec<libc::pid_t>,
}

impl Inherited {
    /// Records the children that this process has now.
    pub fn now() -> Self {
        Self { pids: list() }
    }

    /// Returns whether there were no children.
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty()
    }

    /// Returns whether a process was one of them.
    pub fn contains(&self, pid: libc::pid_t) -> bool {
        self.pids.contains(&pid)
    }

    /// Returns the children that this process has gained since.
    pub fn later(&self) -> Vec<libc::pid_t> {
        let mut later = list();
        later.retain(|pid| !self.contains(*pid));
        later
    }

    /// Returns the children gained since, and their descendants, as far as they still run. In a [`Subreaper`] these include
    /// processes whose parents have ended.
    ///
    /// # Errors
    /// /proc belongs to another PID namespace, or cannot be read.
    pub fn descendants(&self) -> io::Result<Vec<libc::pid_t>> {
        if !proc_is_ours() {
            return Err(io::Error::other("/proc belongs to another PID namespace"));
        }
        let all = living()?;
        let own = std::process::id().cast_signed();
        let mut found: Vec<libc::pid_t> = all
            .iter()
            .filter(|(pid, parent)| *parent == own && !self.contains(*pid))
            .map(|(pid, _)| *pid)
            .collect();
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(all.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            at += 1;
        }
        Ok(found)
    }
}

/// Returns each process of /proc that is not a zombie, with its parent (proc_pid_stat(5)).
fn living() -> io::Result<Vec<(libc::pid_t, libc::pid_t)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have ended by now.
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { continue };
        found.extend(parent_of(&String::from_utf8_lossy(&stat)).map(|parent| (pid, parent)));
    }
    Ok(found)
}

/// Returns the parent in a line of /proc/PID/stat; `None` for a zombie. The second field, the name, may contain spaces and
/// parentheses.
fn parent_of(stat: &str) -> Option<libc::pid_t> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_alive = !matches!(fields.next()?, "Z" | "X" | "x");
    fields.next()?.parse().ok().filter(|_| is_alive)
}

/// Returns the children of this process, including those that have ended and were not waited for.
///
/// If /proc belongs to another PID namespace, its numbers name other processes. Then each number is tried with waitid(2),
/// which takes about half a second if up to four million are possible.
pub fn list() -> Vec<libc::pid_t> {
    if !any() {
        return Vec::new();
    }
    listed_by_proc().unwrap_or_else(|| (1..=highest()).filter(|pid| is_child(*pid)).collect())
}

/// Returns whether the numbers in /proc are those of this process's own PID namespace.
///
/// The `NSpid` line of /proc/self/status (Linux 4.1) has one number for each namespace, from that of /proc down to the
/// process's own. On a kernel without it, the target of /proc/self decides.
pub fn proc_is_ours() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let own = std::process::id().to_string();
    match status.lines().find_map(|line| line.strip_prefix("NSpid:")) {
        Some(numbers) => numbers.split_whitespace().eq([own.as_str()]),
        None => fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == own.as_str()),
    }
}

fn any() -> bool {
    peek(None, ANY_EVENT).map_or_else(|error| error.raw_os_error() != Some(libc::ECHILD), |_| true)
}

fn is_child(pid: libc::pid_t) -> bool {
    peek(Some(pid), ANY_EVENT).is_ok()
}

/// Reads the lists of proc_pid_task_children(5), one per thread. `None` if they are missing, or if they name other
/// processes.
fn listed_by_proc() -> Option<Vec<libc::pid_t>> {
    if !proc_is_ours() {
        return None;
    }
    let mut pids = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A kernel without CONFIG_PROC_CHILDREN does not have this file.
        let text = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        pids.extend(text.split_whitespace().filter_map(|pid| pid.parse::<libc::pid_t>().ok()));
    }
    Some(pids)
}

fn highest() -> libc::pid_t {
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    limit.and_then(|text| text.trim().parse().ok()).filter(|most| (1..=MOST).contains(most)).unwrap_or(MOST)
}

/// Makes this process a child subreaper (prctl(2)) until it is dropped: orphaned descendants become its children, and it
/// reaps them sooner than init might. Without kernel support this changes nothing.
#[derive(Debug)]
pub struct Subreaper {
    was_before: bool,
}

impl Subreaper {
    /// Starts being a subreaper.
    pub fn begin() -> Self {
        // On a kernel that does not answer, the setting has no effect either.
        let was_before = child_subreaper().is_ok_and(|was| was.is_some());
        let _ = set_child_subreaper(Some(getpid()));
        Self { was_before }
    }
}

impl Drop for Subreaper {
    fn drop(&mut self) {
        let _ = set_child_subreaper(self.was_before.then(getpid));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::sync::{Mutex, PoisonError};

    #[test]
    fn children_are_found_in_proc_and_without_it() {
        assert!(proc_is_ours());
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it starts");
        let pid = libc::pid_t::try_from(cat.id()).expect("a number");
        assert!(list().contains(&pid));
        assert!(is_child(pid) && !is_child(std::process::id().cast_signed()));
        let inherited = Inherited::now();
        assert!(inherited.contains(pid) && !inherited.is_empty() && !inherited.later().contains(&pid));
        drop(cat.stdin.take());
        cat.wait().expect("it ends");
        assert!(!list().contains(&pid) && !is_child(pid));
    }

    /// The subreaper setting belongs to the whole process, so these tests exclude each other.
    pub(crate) static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_parent_is_read_behind_any_name_and_a_zombie_has_none() {
        assert_eq!(parent_of("12 (a) R 1 (b)) S 77 12 12 0 -1"), Some(77));
        assert_eq!(parent_of("12 (a) Z 77 12 12 0 -1"), None);
        assert!(
            parent_of("").is_none() && parent_of("1 (a) S").is_none() && parent_of("1 (a) S x").is_none()
        );
    }

    #[test]
    fn descendants_are_the_later_children_and_what_they_started_until_they_end() {
        let inherited = Inherited::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 100 & echo; wait"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("it starts");
        let mut byte = [0];
        io::Read::read_exact(shell.stdout.as_mut().expect("a pipe"), &mut byte).expect("a byte");
        let pid = libc::pid_t::try_from(shell.id()).expect("a number");
        let below = |inherited: &Inherited| inherited.descendants().expect("/proc");
        let of_shell: Vec<_> = living().expect("/proc").into_iter().filter(|(_, of)| *of == pid).collect();
        let found = below(&inherited);
        assert!(found.contains(&pid) && of_shell.iter().all(|(child, _)| found.contains(child)), "{found:?}");
        assert!(!of_shell.is_empty() && !below(&Inherited::now()).contains(&pid));
        shell.kill().expect("it is there");
        let before = below(&inherited).contains(&pid);
        shell.wait().expect("it ends");
        for (child, _) in of_shell {
            let _ = crate::process::kill(child, libc::SIGKILL);
        }
        println!("seen while it ended: {before}");
        assert!(!below(&inherited).contains(&pid));
    }

    #[test]
    fn orphans_come_to_a_subreaper() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let subreaper = Subreaper::begin();
        let inherited = Inherited::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 100 >/dev/null 2>&1 & echo $!; kill -9 $$"]);
        let said = String::from_utf8(shell.output().expect("it starts").stdout).expect("a number");
        let orphan: libc::pid_t = said.trim().parse().expect("a number");
        assert!(inherited.later().contains(&orphan));
        drop(crate::process::Child::adopt(orphan));
        assert!(!inherited.later().contains(&orphan));
        drop(subreaper);
        assert!(child_subreaper().unwrap().is_none());
    }
}
