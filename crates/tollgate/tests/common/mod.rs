//! Shared by the tests of the command: the program in a home of its own, and made-up run documents.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

pub mod guest;
#[path = "../../../../tests/inherited.rs"]
mod inherited;
#[path = "../../../../tests/machines.rs"]
pub mod machines;
pub mod marked;
pub mod text;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The program. `.ci/run` names the optimized one for tests of guests.
pub fn program() -> PathBuf {
    std::env::var_os("TOLLGATE_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_tollgate").into(), PathBuf::from)
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits until `look` returns something. The limit is generous, since a busy machine is slow.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(began.elapsed() < Duration::from_secs(300), "{what} did not happen"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Reads the standard error of a run, which is a pipe, until the run has decided its first figure. Returns what was read.
pub fn until_decided(run: &mut std::process::Child) -> String {
    let mut said = String::new();
    let stderr = run.stderr.as_mut().expect("a pipe");
    // Byte by byte, since another reader takes the rest.
    let mut byte = [0];
    while !said.lines().any(|line| line.starts_with("  ")) || !said.ends_with('\n') {
        assert!(stderr.read(&mut byte).is_ok_and(|read| read == 1), "nothing was decided: {said}");
        said.push(char::from(byte[0]));
    }
    said
}

/// A directory that every user can enter; a user's own directory for temporary files may be closed to others.
#[expect(clippy::disallowed_methods, reason = "a test's own directory is made in it")]
pub fn public_directory() -> TempDir {
    let mode = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.permissions().mode());
    let is_open = |path: &PathBuf| path.ancestors().all(|above| mode(above) & 1 == 1);
    let places = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    let place = places.into_iter().find(is_open).expect("a directory for temporary files that all may use");
    tempfile::tempdir_in(place).expect("a directory")
}

/// A copy of the program in a directory, which every user may execute.
pub fn readable_copy(directory: &Path) -> PathBuf {
    let copy = directory.join("tollgate");
    // Another process copies: a file that this one has open for writing is inherited by another test's child, and executing it
    // then fails (ETXTBSY).
    let copied = Command::new("cp").arg(program()).arg(&copy).output().expect("cp");
    assert!(copied.status.success(), "{copied:?}");
    for path in [directory, &copy] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("our own file");
    }
    copy
}

pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

pub fn row<'a>(document: &'a Value, benchmark: &str) -> &'a Value {
    let rows = document["measurements"].as_array().expect("measurements");
    rows.iter().find(|row| row["benchmark"] == benchmark).unwrap_or_else(|| panic!("no row for {benchmark}"))
}

/// The program, with its own directory of kept runs.
pub struct Home {
    directory: TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn runs(&self) -> PathBuf {
        self.path().join("tollgate/runs")
    }

    /// `None` if a guest can be started.
    pub fn no_guest(&self) -> Option<String> {
        let known = self.json(["environments", "--format=json"]);
        let all = known["environments"].as_array().expect("environments");
        let vm = all.iter().find(|one| one["environment"] == "vm").expect("guests are among the kinds");
        let why = vm["why"].as_str().unwrap_or("it does not work");
        (vm["works"] != true).then(|| format!("no guest can be started: {why}"))
    }

    pub fn tollgate<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(program());
        command.env("XDG_DATA_HOME", self.path()).current_dir(self.path()).args(arguments);
        // The configuration of the user who runs the tests must not apply.
        command.env("XDG_CONFIG_HOME", self.path().join("config"));
        // The limit is for a program that hangs; a busy machine is slow.
        command.timeout(Duration::from_secs(600));
        command
    }

    pub fn output<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        let output = self.tollgate(arguments).assert().success().get_output().stdout.clone();
        String::from_utf8(output).expect("text")
    }

    pub fn json<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Value {
        serde_json::from_str(&self.output(arguments)).expect("JSON")
    }

    /// Returns the one line of the refusal, after the program's name.
    pub fn refusal<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        one_line(&self.tollgate(arguments).assert().code(2).stdout("").get_output().stderr.clone())
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, content).expect("written");
        path.to_str().expect("text").to_owned()
    }

    /// Keeps three other runs like this one, so that runs of its machine are known not to differ.
    pub fn keep_others_like(&self, document: &Value) {
        for other in ["20200101-000000-0000000a", "20200101-000000-0000000b", "20200101-000000-0000000c"] {
            let mut document = document.clone();
            document["id"] = other.into();
            document["label"] = Value::Null;
            self.keep(&document);
        }
    }

    pub fn keep(&self, document: &Value) {
        let id = document["id"].as_str().expect("an id");
        self.file(&format!("tollgate/runs/{id}.json"), document.to_string());
    }

    pub fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut directories = vec![self.path().to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    directories.push(path)
                } else {
                    files.push(path.strip_prefix(self.path()).expect("beneath").display().to_string())
                }
            }
        }
        files.sort();
        files
    }
}

/// Checks that a row has a median, or the reason why it has none.
pub fn expect_answer(row: &Value) {
    let answered = match row["status"].as_str() {
        Some("measured") => row["median"].as_f64().is_some_and(f64::is_finite),
        Some("skipped" | "refused" | "not measured") => {
            row["why"].as_str().is_some_and(|why| !why.is_empty())
        }
        Some("failed") => row["error"].as_str().is_some_and(|error| !error.is_empty()),
        _ => false,
    };
    assert!(answered, "no answer: {row}");
}

pub fn one_line(stderr: &[u8]) -> String {
    let text = String::from_utf8(stderr.to_vec()).expect("text");
    let line = text.strip_suffix('\n').expect("a line");
    assert!(!line.contains('\n'), "more than one line: {text}");
    assert!(!line.contains(|c: char| c.is_control()), "a control character: {line:?}");
    line.strip_prefix("tollgate: ").expect("in the program's name").to_owned()
}

/// A made-up run of three measured cases, two of them slower by `factor`.
pub fn document(id: &str, label: Option<&str>, factor: f64) -> Value {
    json!({
        "schema": 2,
        "tool": {"name": "tollgate", "version": "0.1.0"},
        "id": id,
        "label": label,
        "environment": "vm",
        "started": "2026-11-21T01:54:27Z",
        "finished": "2026-11-21T01:55:27Z",
        "facts": {
            "kernel.release": {"status": "known", "value": format!("6.1.{factor}"), "source": "uname(2)"},
            "run.clock": {"status": "known", "value": "tsc", "source": "CPUID.15H"},
            "run.clock_hz": {"status": "known", "value": 2_000_000_000_i64, "source": "run.clock"},
        },
        "measurements": [
            measured("entry/call", 1.0, &[]),
            measured("entry/syscall", 80.0 * factor, &[]),
            measured("entry/user-dispatch", 100.0 * factor, &["a note"]),
            {"benchmark": "entry/int80", "params": {}, "status": "skipped", "why": "no IA-32 emulation"},
            {"benchmark": "entry/seccomp", "params": {"instructions": 32}, "status": "failed", "error": "it hung"},
        ],
    })
}

/// A measurement of eight processes whose samples lie evenly within half a percent of `at`.
pub fn measured(benchmark: &str, at: f64, notes: &[&str]) -> Value {
    const PROCESSES: usize = 8;
    const ROUNDS: usize = 60;
    // A stride that is prime to the length visits every level once, and looks like no trend.
    let jitter = |n: usize| 1.0 + (n * 37 % ROUNDS) as f64 / ROUNDS as f64 * 0.005;
    // Processes differ, as they do on a machine.
    let pace = |process: usize| 1.0 + (process * 5 % PROCESSES) as f64 * 0.000_1;
    let samples: Vec<f64> = (0..PROCESSES * ROUNDS).map(|n| at * jitter(n) * pace(n / ROUNDS)).collect();
    let processes = vec![json!({"rounds": ROUNDS + 1, "discarded": [ROUNDS]}); PROCESSES];
    let baseline =
        benchmark.ends_with("user-dispatch").then(|| json!({"benchmark": "entry/syscall", "params": {}}));
    let mut measurement = json!({
        "benchmark": benchmark, "params": {}, "status": "measured", "unit": "ns", "provenance": "hardware",
        "ops_per_sample": 500, "clock_hz": 2_000_000_000_i64, "samples": samples, "discarded": PROCESSES,
        "processes": processes, "group": "entry", "notes": notes,
    });
    if let Some(baseline) = baseline {
        measurement["baseline"] = baseline;
    }
    measurement
}
