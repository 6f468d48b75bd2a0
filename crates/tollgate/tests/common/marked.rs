//! Runs of whole suites: every row has an answer, and nothing is left.

use std::collections::BTreeMap;
use std::fmt::Display;
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

    pub fn start(command: Command, patterns: &[&str], processes: u32) -> Self {
        Self::with(command, patterns, ["--processes".to_owned(), processes.to_string()])
    }

    /// Like the constructor above, with a time limit. One process of each case of a whole suite takes minutes on a busy
    /// machine: a caller repeats the run with more time until it has enough.
    pub fn within(command: Command, patterns: &[&str], seconds: u32) -> Self {
        Self::with(command, patterns, ["--time".to_owned(), seconds.to_string()])
    }

    fn with(mut command: Command, patterns: &[&str], length: [String; 2]) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mark = format!("TOLLGATE_TEST_MARK={}-{number}", std::process::id());
        let (name, value) = mark.split_once('=').expect("a name and a value");
        command.arg("run").args(patterns).args(["--format=json", "--quiet", "--out"]).arg("/dev/null");
        command.args(length).env(name, value);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { command, mark }
    }

    pub fn alive(&self) -> Vec<u32> {
        bearing(&self.mark)
    }

    pub fn expect_nothing_alive(&self) {
        super::wait_for("the end of all processes", || self.alive().is_empty().then_some(()));
    }

    /// Runs to the end. Returns no rows if the time ended before anything was measured.
    pub fn rows(&mut self) -> Rows {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let output: Output = self.command.output().expect("the program starts");
        self.expect_nothing_alive();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("nothing was measured in") {
            return Rows(Vec::new());
        }
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

/// Claims about latencies; for each claim that does not hold, its figures.
#[derive(Default)]
pub struct Claims(BTreeMap<String, String>);

impl Claims {
    /// Adds a claim that may fail because of other work on the machine.
    pub fn claim(&mut self, what: impl Into<String>, holds: bool, figures: impl Display) {
        if !holds {
            self.0.insert(what.into(), figures.to_string());
        }
    }
}

/// Checks that each claim holds in one of up to four runs, each twice as long as the one before, in processes or seconds.
pub fn expect_in_one_of_four(
    length: u32,
    mut run: impl FnMut(u32) -> Rows,
    mut check: impl FnMut(&Rows, &mut Claims),
) {
    let mut open: Option<BTreeMap<String, String>> = None;
    for attempt in 0..4 {
        let mut claims = Claims::default();
        let rows = run(length << attempt);
        if rows.0.is_empty() {
            println!("attempt {attempt}: nothing was measured in its time");
            continue;
        }
        check(&rows, &mut claims);
        let still = match open {
            Some(open) => claims.0.into_iter().filter(|(what, _)| open.contains_key(what)).collect(),
            None => claims.0,
        };
        if still.is_empty() {
            return;
        }
        println!("attempt {attempt}: {still:#?}");
        open = Some(still);
    }
    panic!("in none of four runs: {open:#?}");
}
