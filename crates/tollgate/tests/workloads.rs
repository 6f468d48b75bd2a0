//! The suite of workloads: every case has an answer, work that was not done is noticed, and nothing is left.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::marked::listed;
use common::text::{refusals, screen, words};
use common::{Home, expect_answer, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Two runs at a time would be each other's noise.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On the disk of the build; the directory for temporary files may be in memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

/// A run of some cases in a directory, each this many times.
fn program(patterns: &[&str], processes: u32, within: &Path) -> Command {
    let mut command = run_of(patterns, within);
    command.args(["--processes", &processes.to_string()]);
    command
}

fn run_of(patterns: &[&str], within: &Path) -> Command {
    let mut command = Command::new(common::program());
    command.arg("run").args(patterns).arg("--quiet");
    command.arg("--dir").arg(within).env("HOME", within);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn document(mut command: Command) -> Value {
    let output = command.args(["--out", "-"]).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("a document")
}

fn rows(document: &Value) -> &Vec<Value> {
    document["measurements"].as_array().expect("measurements")
}

fn reason(row: &Value) -> &str {
    row["why"].as_str().or(row["error"].as_str()).unwrap_or_default()
}

fn expect_empty(directory: &Path) {
    let left: Vec<PathBuf> =
        fs::read_dir(directory).expect("ours").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Processes whose directory or an open file is beneath a directory: a lock is held until the last of them ends.
fn within(directory: &Path) -> Vec<String> {
    let directory = directory.canonicalize().expect("a path");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let leads_there = |link: PathBuf| fs::read_link(link).is_ok_and(|at| at.starts_with(&directory));
    let is_there = |path: &PathBuf| {
        let descriptors = fs::read_dir(path.join("fd")).into_iter().flatten().flatten();
        leads_there(path.join("cwd")) || descriptors.map(|entry| entry.path()).any(leads_there)
    };
    let paths = processes.map(|entry| entry.path()).filter(is_there);
    paths.map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default()).collect()
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn every_case_is_answered_and_nothing_is_left() {
    let _alone = alone();
    let temporary = directory();
    let run = document(program(&["workloads"], 1, temporary.path()));
    expect_empty(temporary.path());
    assert!(within(temporary.path()).is_empty());
    let small = |(_, params): &(Value, Value)| params["size"] == "small";
    let answered: Vec<(Value, Value)> =
        rows(&run).iter().map(|row| (row["benchmark"].clone(), row["params"].clone())).collect();
    let listed: Vec<(Value, Value)> = listed(&["workloads"]).into_iter().filter(small).collect();
    assert_eq!(answered, listed);
    for row in rows(&run) {
        println!("{} {}: {} {}", row["benchmark"], row["params"], row["status"], reason(row));
        match row["status"].as_str() {
            Some("measured") => is_whole(row),
            Some("skipped") => {
                let why = reason(row);
                assert!(why.contains("install") || why.starts_with("a cold cache is not possible"), "{row}");
            }
            _ => panic!("{row}"),
        }
    }
    let versions = run["facts"].as_object().expect("facts").keys();
    assert!(versions.filter(|name| name.starts_with("workloads.")).count() >= 3, "{}", run["facts"]);
}

/// Checks that each sample is a repetition with its own account of time.
fn is_whole(row: &Value) {
    let samples = row["samples"].as_array().expect("samples");
    let traced = row["traced"].as_array().expect("executions");
    assert_eq!(samples.len(), traced.len(), "{}", row["benchmark"]);
    for (sample, traced) in samples.iter().zip(traced) {
        assert_eq!(sample.as_f64(), traced["wall_ns"].as_f64());
        assert!(
            traced["user_ns"]
                .as_u64()
                .zip(traced["sys_ns"].as_u64())
                .is_some_and(|(user, sys)| user + sys > 0)
        );
        let from = if traced["backend"] == "bpf" && traced["missed"].is_null() { "trace" } else { "rusage" };
        assert_eq!(traced["times_from"], from);
        assert_eq!(traced["ended"], json!({"exit": 0}));
    }
    let processes = row["processes"].as_array().expect("processes");
    assert!(processes.iter().all(|process| process["rounds"] == 1), "{processes:?}");
    let mut notes = row["notes"].as_array().expect("notes").iter().filter_map(Value::as_str);
    assert!(notes.any(|note| note.starts_with("checked after each run: ")), "{}", row["notes"]);
}

#[test]
fn they_run_on_request_only() {
    let home = Home::new();
    let lines = [
        "run entry/call --time 1 --size large",
        "run workloads --time 1 --cpu 0",
        "run workloads/chekout --time 1",
    ];
    insta::assert_snapshot!("refusals", refusals(&home, lines));
    let list = screen(&home, ["list"]);
    assert_eq!(
        list.lines().find(|line| line.starts_with("workloads: ")),
        Some("workloads: Real programs on a generated source tree, traced; only on request.")
    );
}

/// A made-up run: six repetitions of each of these, about this many milliseconds long.
fn made_up(estimates: &[(&str, Value, f64)]) -> Value {
    let measurement = |(benchmark, params, ms): &(&str, Value, f64)| {
        let samples: Vec<f64> = (0..6).map(|n| ms * 1e6 * (1.0 + f64::from(n) / 100.0)).collect();
        let mut row = common::measured(benchmark, 1.0, &[]);
        row["params"] = params.clone();
        row["processes"] = json!(vec![json!({"rounds": 1, "discarded": []}); samples.len()]);
        row["samples"] = json!(samples);
        (row["ops_per_sample"], row["discarded"], row["group"]) = (json!(1), json!(0), json!("workloads"));
        row
    };
    let mut run = common::document("20261121-015427-0001", None, 1.0);
    run["measurements"] = estimates.iter().map(measurement).collect();
    run
}

#[test]
fn findings_need_disjoint_intervals() {
    let home = Home::new();
    let build = |cache: &str, jobs: Value| json!({"size": "small", "cache": cache, "jobs": jobs});
    let grep = |cache: &str| json!({"size": "small", "cache": cache});
    let run = made_up(&[
        ("workloads/build", build("cold", json!(1)), 4010.0),
        ("workloads/build", build("warm", json!(1)), 4000.0),
        ("workloads/build", build("warm", json!("all")), 2000.0),
        ("workloads/grep", grep("cold"), 12.0),
        ("workloads/grep", grep("warm"), 4.0),
    ]);
    let file = home.file("run.json", run.to_string());
    let shown = home.output(["show", &file, "--all"]);
    let sentences = words(&shown);
    let cold = "With a cold page cache, on the small tree: grep 3.00 × slower.";
    assert!(sentences.contains(cold), "{shown}");
    let jobs = "Building the small tree with a job for each processor is 2.00 × faster than with one job.";
    assert!(sentences.contains(jobs), "{shown}");
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn in_memory_nothing_is_cold() {
    let _alone = alone();
    let Ok(temporary) = tempfile::tempdir_in("/dev/shm") else {
        return println!("skipped: no directory can be made in /dev/shm");
    };
    let run = document(program(&["workloads/grep"], 1, temporary.path()));
    for row in rows(&run).iter().filter(|row| row["params"]["cache"] == "cold") {
        let is_named = reason(row).starts_with("a cold cache is not possible here");
        assert!(row["status"] == "skipped" && is_named, "{row}");
    }
    expect_empty(temporary.path());
}

/// A directory of programs, the only one in PATH.
struct Programs(tempfile::TempDir);

impl Programs {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn fake(self, name: &str, script: &str) -> Self {
        let path = self.0.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
        self
    }

    /// The real program; false if there is none.
    fn real(&self, name: &str) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.exists());
        found.is_some_and(|found| symlink(found, self.0.path().join(name)).is_ok())
    }
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let _alone = alone();
    let (temporary, none) = (directory(), Programs::new());
    let mut command = program(&["workloads"], 1, temporary.path());
    command.env("PATH", none.0.path());
    let run = document(command);
    let missing = |benchmark: &str| match benchmark {
        "workloads/checkout" => "git is missing: install git (in Debian the package git)",
        "workloads/tags" => {
            "ctags and cscope are missing: install Universal Ctags or cscope (in Debian the packages universal-ctags and \
             cscope)"
        }
        "workloads/build" => "make is missing: install GNU make (in Debian the package make)",
        "workloads/unpack" => "tar is missing: install GNU tar (in Debian the package tar)",
        _ => "grep is missing: install GNU grep (in Debian the package grep)",
    };
    for row in rows(&run) {
        expect_answer(row);
        let why = reason(row);
        assert_eq!(row["status"], "skipped", "{row}");
        let missing = missing(row["benchmark"].as_str().expect("a name"));
        assert!(why.starts_with("a cold cache is not possible") || why == missing, "{row}");
    }
    expect_empty(temporary.path());
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn a_program_that_does_not_do_its_work_fails() {
    let _alone = alone();
    let temporary = directory();
    let programs = Programs::new()
        .fake("git", "exit 0")
        .fake("tar", "exit 0")
        .fake("ctags", "test \"$1\" = --version && echo 'Universal Ctags 0'; : > ../tags")
        .fake("grep", "echo one")
        .fake(
            "cc",
            "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && { : > \"$2\"; chmod 755 \"$2\"; }; shift; done",
        );
    let builds = ["make", "sh", "mkdir", "chmod"].iter().all(|name| programs.real(name));
    let mut command = program(&["workloads"], 1, temporary.path());
    command.env("PATH", programs.0.path());
    let run = document(command);
    for row in rows(&run) {
        let why = reason(row);
        println!("{} {}: {} {why}", row["benchmark"], row["params"], row["status"]);
        if row["status"] == "skipped" {
            assert!(why.starts_with("a cold cache is not possible") || !builds, "{row}");
            continue;
        }
        let expected = match row["benchmark"].as_str() {
            Some("workloads/checkout" | "workloads/unpack") => "exited with status 0, but there are 0 files",
            Some("workloads/tags") => "its index has 0 functions",
            Some("workloads/grep") => "found 1 lines",
            _ => "printed nothing",
        };
        assert!(row["status"] == "failed" && why.contains(expected), "{row}");
    }
    expect_empty(temporary.path());
}

#[test]
fn a_program_that_hangs_takes_no_more_than_its_time() {
    let _alone = alone();
    let temporary = directory();
    let programs = Programs::new().fake("tar", "[ \"$1\" = --version ] || exec sleep 100000");
    if !programs.real("sleep") || !programs.real("grep") {
        return println!("skipped: no sleep, or no grep");
    }
    // The sleep takes longer than the test may. If the time ends before the other case is measured, it is doubled.
    let run = |seconds: &u32| {
        let mut command =
            run_of(&["workloads/unpack{cache=warm}", "workloads/grep{cache=warm}"], temporary.path());
        command.env("PATH", programs.0.path()).args(["--time", &seconds.to_string(), "--out", "-"]);
        let output = command.output().expect("the program starts");
        serde_json::from_slice::<Value>(&output.stdout).ok()
    };
    let is_measured = |run: &Value| common::row(run, "workloads/grep")["status"] == "measured";
    let run =
        [3, 6, 12, 24, 48, 96].iter().filter_map(run).find(is_measured).expect("one that is long enough");
    assert_eq!(
        reason(common::row(&run, "workloads/unpack")),
        "it took longer than the time that the run had left for it"
    );
    expect_empty(temporary.path());
    assert!(within(temporary.path()).is_empty());
}

fn begun(temporary: &Path, after: Duration) -> Child {
    let mut command = program(&["workloads"], 2000, temporary);
    command.args(["--out", "/dev/null"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().expect("the program starts");
    wait_for("the source tree", || {
        assert!(run.try_wait().expect("ours").is_none(), "it ended by itself");
        fs::read_dir(temporary).expect("ours").next().map(drop)
    });
    std::thread::sleep(after);
    run
}

#[test]
fn interrupted_it_ends_at_once_and_leaves_nothing() {
    let _alone = alone();
    let temporary = directory();
    for (signal, after) in [(Signal::INT, 50), (Signal::TERM, 1500), (Signal::INT, 3000)] {
        let mut run = begun(temporary.path(), Duration::from_millis(after));
        kill_process(Pid::from_child(&run), signal).expect("ours");
        let ended = run.wait().expect("waited");
        assert_eq!(ended.signal(), Some(signal.as_raw()));
        expect_empty(temporary.path());
        assert!(within(temporary.path()).is_empty(), "{:?}", within(temporary.path()));
    }
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn killed_its_programs_end_and_the_next_run_takes_its_files_away() {
    let _alone = alone();
    let temporary = directory();
    for after in [1500, 3000] {
        let mut run = begun(temporary.path(), Duration::from_millis(after));
        run.kill().expect("ours");
        run.wait().expect("waited");
        wait_for("the end of its programs", || within(temporary.path()).is_empty().then_some(()));
    }
    let left: Vec<_> = fs::read_dir(temporary.path()).expect("ours").flatten().collect();
    assert!(!left.is_empty());
    // When a process ends, its descriptors vanish some time before the kernel releases its locks.
    for directory in left {
        let directory = fs::File::open(directory.path()).expect("ours");
        wait_for("the end of the lock", || {
            rustix::fs::flock(&directory, rustix::fs::FlockOperation::NonBlockingLockShared).ok()
        });
    }
    document(program(&["workloads/grep{cache=warm}"], 1, temporary.path()));
    expect_empty(temporary.path());
}

#[test]
fn a_child_that_was_there_before_is_left_alone() {
    let _alone = alone();
    let temporary = directory();
    let pids = tempfile::tempdir().expect("a directory");
    let pid = pids.path().join("pid");
    let command = program(&["workloads/grep{cache=warm}", "workloads/tags"], 1, temporary.path());
    let mut shell = Command::new("bash");
    let script = format!("sleep 300 & echo $! > '{}'; exec \"$@\"", pid.display());
    shell.args(["-c", &script, "bash"]).arg(command.get_program()).args(command.get_args());
    shell.args(["--out", "/dev/null"]).env("HOME", temporary.path()).env_remove("XDG_DATA_HOME");
    let status = shell.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("it starts");
    let pid: i32 = fs::read_to_string(&pid).expect("its number").trim().parse().expect("a number");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Its parent is now the subreaper of these tests, or init: it is identified by its name.
    assert!(stat.contains("(sleep) S"), "{stat}");
    kill_process(Pid::from_raw(pid).expect("a number"), Signal::KILL).expect("our sleep");
    assert!(status.success());
    expect_empty(temporary.path());
}
