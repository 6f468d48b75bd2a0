//! Runs of whole suites: every row answered, nothing left behind.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tollgate_os::signals::{self, Disposition};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tollgate");

/// Two runs at a time would be each other's noise.
pub static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A shell that starts the tests in its background lets them ignore SIGINT, and nohup(1) SIGHUP; they would hand that on.
pub fn hear_interrupts(command: &mut Command) {
    let asking = &[libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    signals::start_with(command, Disposition::default_with(0), asking);
}

/// A run of some suites, marked so that leftover files and processes are found.
pub struct Marked {
    pub command: Command,
    mark: String,
}

impl Marked {
    pub fn new(patterns: &[&str], seconds: u32) -> Self {
        Self::of(Command::new(PROGRAM), patterns, seconds)
    }

    pub fn of(mut command: Command, patterns: &[&str], seconds: u32) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mark = format!("TOLLGATE_TEST_MARK={}-{number}", std::process::id());
        let (name, value) = mark.split_once('=').expect("a name and a value");
        command.arg("run").args(patterns).args(["--format=json", "--quiet", "--out"]).arg("/dev/null");
        command.args(["--time", &seconds.to_string()]).env(name, value);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        hear_interrupts(&mut command);
        Self { command, mark }
    }

    /// Processes that still bear the mark.
    pub fn alive(&self) -> Vec<u32> {
        let entries = fs::read_dir("/proc").expect("/proc");
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let marked = |pid: &u32| {
            let facts = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            facts.split(|&byte| byte == 0).any(|variable| variable == self.mark.as_bytes())
        };
        pids.filter(|pid| *pid != std::process::id()).filter(marked).collect()
    }

    pub fn expect_nothing_alive(&self) {
        let began = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(3), "{} processes are left", alive.len());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs to the end; the rows, and how long it took.
    pub fn rows(&mut self) -> (Rows, Duration) {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let output: Output = self.command.output().expect("the program starts");
        let took = began.elapsed();
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        self.expect_nothing_alive();
        let rows = document["measurements"].as_array().expect("measurements").clone();
        for row in &rows {
            super::expect_answer(row);
            println!(
                "{} {}: {} {}{}",
                row["benchmark"], row["params"], row["median"], row["why"], row["error"]
            );
        }
        (Rows(rows), took)
    }
}

pub struct Rows(pub Vec<Value>);

impl Rows {
    pub fn find(&self, benchmark: &str, params: &Value) -> &Value {
        let row = self.0.iter().find(|row| row["benchmark"] == benchmark && row["params"] == *params);
        row.unwrap_or_else(|| panic!("no row for {benchmark} {params}"))
    }

    /// The median, where it was measured.
    pub fn estimate(&self, benchmark: &str, params: Value) -> Option<f64> {
        let row = self.find(benchmark, &params);
        if row["status"] != "measured" {
            println!("skipped: {benchmark} {params} was not measured here: {}{}", row["why"], row["error"]);
        }
        row["median"].as_f64()
    }
}

/// The name and parameters of every case that is listed.
pub fn listed(patterns: &[&str]) -> Vec<(Value, Value)> {
    let output =
        Command::new(PROGRAM).arg("list").args(patterns).arg("--format=json").output().expect("a list");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let benchmarks = list["benchmarks"].as_array().expect("benchmarks");
    let cases = benchmarks.iter().flat_map(|benchmark| {
        let params = benchmark["params"].as_array().expect("cases").clone();
        params.into_iter().map(move |params| (benchmark["name"].clone(), params))
    });
    cases.collect()
}
