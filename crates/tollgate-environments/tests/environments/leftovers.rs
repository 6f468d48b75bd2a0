//! Processes, mounts, cgroups and files that a session may leave.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::program::MARK;

/// Time for the cleanup process to undo everything, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory that only one test uses, and the mark of its processes.
pub struct Watched {
    pub place: tempfile::TempDir,
    pub mark: String,
}

/// A living process.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: i32,
    pub name: String,
    pub words: String,
}

impl Watched {
    pub fn new() -> Self {
        let place = tempfile::Builder::new().prefix("tg-test-").tempdir_in("/tmp").unwrap();
        let mark = place.path().file_name().unwrap().to_str().unwrap().to_owned();
        Self { place, mark }
    }

    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Living processes that have the mark among their variables, or the directory among their arguments.
    pub fn processes(&self) -> Vec<Process> {
        let entries =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let pids = entries.filter_map(|name| name.parse::<i32>().ok()).filter(|pid| *pid != own());
        pids.filter_map(|pid| self.process(pid)).collect()
    }

    fn process(&self, pid: i32) -> Option<Process> {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}"));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', " ");
        let variables = text(read("environ").unwrap_or_default());
        let words = text(read("cmdline").ok()?);
        let mark = format!("{MARK}={}", self.mark);
        if !variables.contains(&mark) && !words.contains(self.path().to_str().unwrap()) {
            return None;
        }
        let stat = text(read("stat").ok()?);
        let (front, rest) = stat.rsplit_once(')')?;
        let rest: Vec<&str> = rest.split_whitespace().collect();
        let is_alive = !matches!(*rest.first()?, "Z" | "X");
        let name = front.split_once('(')?.1.to_owned();
        is_alive.then_some(Process { pid, name, words })
    }

    fn now(&self) -> Vec<String> {
        let processes = self.processes().into_iter().map(|process| format!("{process:?}"));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let below = self.path().to_str().unwrap();
        let mounts: Vec<String> =
            mounts.lines().filter(|line| line.contains(below)).map(|line| format!("mount {line}")).collect();
        let files =
            fs::read_dir(self.path()).unwrap().map(|entry| format!("file {:?}", entry.unwrap().path()));
        processes.chain(mounts).chain(files).collect()
    }

    /// Waits until nothing is left. Returns what remains.
    pub fn left(&self, before: &Groups) -> Vec<String> {
        let began = Instant::now();
        loop {
            let mut now = self.now();
            now.extend(before.later());
            if now.is_empty() || began.elapsed() > PATIENCE {
                return now;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn own() -> i32 {
    std::process::id().cast_signed()
}

/// Cgroups and runtime states of environments, whose names contain the process IDs of this program's processes.
#[derive(Default)]
pub struct Groups {
    /// Process ID of the command, which is part of the names.
    pub command: Option<u32>,
}

impl Groups {
    fn later(&self) -> Vec<String> {
        let Some(command) = self.command else { return Vec::new() };
        let sign = format!("tollgate-{command}-");
        let mut found = Vec::new();
        for root in ["/sys/fs/cgroup", "/run/runc", "/run/crun", "/run/user/0/runc"] {
            named(Path::new(root), &sign, 4, &mut found);
        }
        found.into_iter().map(|path| format!("group {path:?}")).collect()
    }
}

fn named(directory: &Path, sign: &str, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().contains(sign) {
            found.push(entry.path());
        } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            named(&entry.path(), sign, depth - 1, found);
        }
    }
}
