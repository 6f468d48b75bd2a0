//! Following in a process of its own: signals, orphans and who waits for them belong to a whole process.

#![allow(dead_code)] // Each test uses some of it.
#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An example of this crate. None where they were not built.
fn example(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = own.parent()?.parent()?.join("examples").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} was not built", path.display());
    None
}

/// The program that plays what is followed.
pub fn puppet() -> Option<PathBuf> {
    example("puppet")
}

/// What following was told to be.
#[derive(Debug, Default)]
pub struct Told {
    pub output: Option<Output>,
    /// The first line's numbers and words.
    pub head: BTreeMap<String, String>,
    pub calls: BTreeMap<String, BTreeMap<String, u64>>,
    /// All lines.
    pub lines: Vec<String>,
}

impl Told {
    pub fn of(out: &Path) -> Self {
        let text = fs::read_to_string(out).unwrap_or_default();
        let mut told = Self { lines: text.lines().map(str::to_owned).collect(), ..Self::default() };
        let pairs = |line: &str| -> Vec<(String, String)> {
            let pairs = line.split(' ').filter_map(|word| word.split_once('='));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        told.head = told.lines.first().map(|line| pairs(line)).unwrap_or_default().into_iter().collect();
        for line in told.lines.iter().filter_map(|line| line.strip_prefix("call ")) {
            let name = line.split(' ').next().unwrap_or("").to_owned();
            let numbers =
                pairs(line).into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?)));
            told.calls.insert(name, numbers.collect());
        }
        assert!(!told.lines.iter().any(|line| line.starts_with("invalid")), "{text}");
        for (name, call) in &told.calls {
            let parts: u64 = ["on", "sleep", "disk", "ready", "untold"].iter().map(|part| call[*part]).sum();
            assert_eq!(parts, call["total"], "{name}");
        }
        told
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

/// A command that follows another one, and where it will tell of it.
pub fn following(options: &[&str], command: &[&str]) -> Option<(Command, tempfile::TempDir)> {
    let place = tempfile::tempdir().expect("a directory");
    let mut follow = Command::new(example("follow")?);
    follow.args(options).arg(format!("out={}", place.path().join("out").display())).arg("--").args(command);
    Some((follow, place))
}

/// Follows a command to its end.
pub fn follow(options: &[&str], command: &[&str]) -> Option<Told> {
    let (mut follow, place) = following(options, command)?;
    let output = follow.output().expect("it starts");
    let mut told = Told::of(&place.path().join("out"));
    told.output = Some(output);
    Some(told)
}

/// With the puppet as the command.
pub fn follow_puppet(options: &[&str], role: &[&str]) -> Option<Told> {
    let puppet = puppet()?;
    let mut command = vec![puppet.to_str().expect("a path of letters")];
    command.extend(role);
    follow(options, &command)
}

/// Waits until something holds, ten seconds at most.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what} did not come to be");
}
