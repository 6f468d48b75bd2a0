//! Runs of whole suites: every row has an answer, and nothing is left.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::program;

/// Two runs at a time would be each other's noise.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A run of some suites in this many processes of each case, marked so that leftover files and processes are found.
pub struct Marked {
    pub command: Command,
    mark: String,
}

impl Marked {
    pub fn new(patterns: &[&str], processes: u32) -> Self {
        Self::start(Command::new(program()), patterns, processes)
    }

    pub fn start(mut command: Command, patterns: &[&str], processes: u32) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mark = format!("TOLLGATE_TEST_MARK={}-{number}", std::process::id());
        let (name, value) = mark.split_once('=').expect("a name and a value");
        command.arg("run").args(patterns).args(["--format=json", "--quiet", "--out"]).arg("/dev/null");
        command.args(["--processes", &processes.to_string()]).env(name, value);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, mark }
    }

    pub fn alive(&self) -> Vec<u32> {
        bearing(&self.mark)
    }

    pub fn expect_nothing_alive(&self) {
        super::wait_for("the end of all processes", || self.alive().is_empty().then_some(()));
    }

    /// Runs to the end.
    pub fn rows(&mut self) -> Rows {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let output: Output = self.command.output().expect("the program starts");
        self.expect_nothing_alive();
        let said = String::from_utf8_lossy(&output.stderr);
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        let rows = document["measurements"].as_array().expect("measurements").clone();
        for row in &rows {
            super::expect_answer(row);
            println!(
                "{} {}: {} {}{}",
                row["benchmark"], row["params"], row["median"], row["why"], row["error"]
            );
        }
        Rows(rows)
    }
}

/// Returns all processes except this one whose environment has a variable such as `NAME=value`.
pub fn bearing(mark: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let marked = |pid: &u32| {
        let facts = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        facts.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    };
    pids.filter(|pid| *pid != std::process::id()).filter(marked).collect()
}

pub struct Rows(pub Vec<Value>);

impl Rows {
    pub fn find(&self, benchmark: &str, params: &Value) -> &Value {
        let row = self.0.iter().find(|row| row["benchmark"] == benchmark && row["params"] == *params);
        row.unwrap_or_else(|| panic!("no row for {benchmark} {params}"))
    }

    pub fn estimate(&self, benchmark: &str, params: Value) -> Option<f64> {
        let row = self.find(benchmark, &params);
        if row["status"] != "measured" {
            println!("skipped: {benchmark} {params} was not measured here: {}{}", row["why"], row["error"]);
        }
        row["median"].as_f64()
    }
}

pub fn listed(patterns: &[&str]) -> Vec<(Value, Value)> {
    let output =
        Command::new(program()).arg("list").args(patterns).arg("--format=json").output().expect("a list");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let benchmarks = list["benchmarks"].as_array().expect("benchmarks");
    let cases = benchmarks.iter().flat_map(|benchmark| {
        let params = benchmark["params"].as_array().expect("cases").clone();
        params.into_iter().map(move |params| (benchmark["name"].clone(), params))
    });
    cases.collect()
}
