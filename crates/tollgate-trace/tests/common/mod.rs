//! Traces in a separate process, since signals and orphans belong to a whole process.

#![allow(dead_code)] // Each test uses some of it.
#![allow(clippy::panic)] // A test may stop at the first surprise, including its helpers.

#[path = "../../../../tests/inherited.rs"]
mod inherited;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns the path of an example of this crate; `None` if it was not built.
fn example(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = own.parent()?.parent()?.join("examples").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} was not built", path.display());
    None
}

pub fn puppet() -> Option<PathBuf> {
    example("puppet")
}

/// The output of the example `trace`.
#[derive(Debug, Default)]
pub struct Report {
    pub output: Option<Output>,
    /// The first line's numbers and words.
    pub head: BTreeMap<String, String>,
    pub calls: BTreeMap<String, BTreeMap<String, u64>>,
    pub lines: Vec<String>,
}

impl Report {
    pub fn read(out: &Path) -> Self {
        let text = fs::read_to_string(out).unwrap_or_default();
        let mut report = Self { lines: text.lines().map(str::to_owned).collect(), ..Self::default() };
        let pairs = |line: &str| -> Vec<(String, String)> {
            let pairs = line.split(' ').filter_map(|word| word.split_once('='));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        report.head = report.lines.first().map(|line| pairs(line)).unwrap_or_default().into_iter().collect();
        for line in report.lines.iter().filter_map(|line| line.strip_prefix("call ")) {
            let name = line.split(' ').next().unwrap_or("").to_owned();
            let numbers =
                pairs(line).into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
            report.calls.insert(name, numbers.collect());
        }
        assert!(!report.lines.iter().any(|line| line.starts_with("invalid")), "{text}");
        for (name, call) in &report.calls {
            let parts: u64 = ["on", "sleep", "disk", "ready", "unknown"].iter().map(|part| call[*part]).sum();
            assert_eq!(parts, call["total"], "{name}");
        }
        report
    }

    pub fn number(&self, name: &str) -> u64 {
        self.head
            .get(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    pub fn call(&self, name: &str, what: &str) -> u64 {
        self.calls.get(name).map_or(0, |call| call[what])
    }

    pub fn status(&self) -> std::process::ExitStatus {
        self.output.as_ref().expect("it ran").status
    }

    pub fn has_note(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.starts_with("note ") && line.contains(text))
    }
}

/// Prepares a command that traces another one, and the directory of its report.
pub fn tracing(options: &[&str], command: &[&str]) -> Option<(Command, tempfile::TempDir)> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut trace = Command::new(example("trace")?);
    trace
        .args(options)
        .arg(format!("out={}", directory.path().join("out").display()))
        .arg("--")
        .args(command);
    Some((trace, directory))
}

pub fn run_traced(options: &[&str], command: &[&str]) -> Option<Report> {
    let (mut tracing, directory) = tracing(options, command)?;
    let output = tracing.output().expect("it starts");
    let mut report = Report::read(&directory.path().join("out"));
    report.output = Some(output);
    Some(report)
}

/// Traces the puppet as the command.
pub fn trace_puppet(options: &[&str], role: &[&str]) -> Option<Report> {
    let puppet = puppet()?;
    let mut command = vec![puppet.to_str().expect("a path of letters")];
    command.extend(role);
    run_traced(options, &command)
}

/// Waits until something holds. The limit is generous, since a busy machine takes its time.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what} did not come to be");
}

pub fn send(pid: libc::pid_t, signal: libc::c_int) {
    assert!(tollgate_os::process::kill(pid, signal).is_ok(), "kill({pid}, {signal})");
}

/// Returns the state of proc_pid_stat(5); `-` if there is no such process.
pub fn state(pid: libc::pid_t) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}
