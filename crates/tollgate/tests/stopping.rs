//! Stopped at any moment, the program leaves no process and no file.

mod common;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use common::{Home, one_line, program, until_decided, wait_for};
use rustix::process::{Pid, Signal, kill_process};

fn tollgate(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).env("XDG_DATA_HOME", home.path()).stdin(Stdio::null());
    command
}

/// A run that takes longer than any test waits.
fn long_run(home: &Home) -> Child {
    let mut command = tollgate(home, &["run", "entry", "--time", "600"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
}

fn parent_of(stat: &str) -> Option<u32> {
    // The command's name may have any characters; the state and the parent follow it.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn children(of: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| parent_of(&stat) == Some(of))
    })
    .collect()
}

/// Whether a measuring process of this test, or its 32-bit program, still runs.
fn still_runs(pid: u32) -> bool {
    let names: [&[u8]; 2] = [b"tollgate-bench", b"tollgate-compat"];
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| names.iter().any(|name| line.starts_with(name)))
}

/// Stops a run while a measuring process is at work; returns the signal that ended it.
fn stop(home: &Home, signal: Signal, after: Duration) -> Option<i32> {
    let mut run = long_run(home);
    let measuring =
        wait_for("measuring", || Some(children(run.id())).filter(|measuring| !measuring.is_empty()));
    std::thread::sleep(after);
    let measuring: Vec<u32> = measuring.into_iter().chain(children(run.id())).collect();
    let measuring: Vec<u32> =
        measuring.iter().copied().chain(measuring.iter().flat_map(|&pid| children(pid))).collect();
    kill_process(Pid::from_child(&run), signal).expect("our own child");
    let status = run.wait().expect("waited");
    wait_for("the end of the measuring processes", || {
        (!measuring.iter().any(|&pid| still_runs(pid))).then_some(())
    });
    let kept = home.files();
    // The run so far is kept, unless the program was killed.
    let is_run = |file: &String| signal != Signal::KILL && file.ends_with(".json");
    assert!(kept.len() <= 1 && kept.iter().all(is_run), "{kept:?} was left behind");
    kept.iter().for_each(|file| drop(std::fs::remove_file(home.path().join(file))));
    status.signal()
}

#[test]
fn interrupted_it_leaves_no_process_and_at_most_a_run() {
    let home = Home::new();
    assert_eq!(stop(&home, Signal::INT, Duration::from_millis(300)), Some(libc::SIGINT));
    assert_eq!(stop(&home, Signal::TERM, Duration::from_millis(900)), Some(libc::SIGTERM));
}

#[test]
fn interrupted_it_keeps_what_was_measured_until_then() {
    let home = Home::new();
    let out = home.path().join("partial.json");
    let path = out.display().to_string();
    let mut command = tollgate(&home, &["run", "entry/syscall", "--time", "600", "--out", &path]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let before = until_decided(&mut run);
    kill_process(Pid::from_child(&run), Signal::INT).expect("our own child");
    let output = run.wait_with_output().expect("waited");
    assert_eq!(output.status.signal(), Some(libc::SIGINT));
    let said = before + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the run until then was kept"), "{said}");
    assert!(!output.stdout.is_empty());
    let run: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).expect("a run")).expect("JSON");
    assert_eq!(run["facts"]["run.interrupted"]["value"], "SIGINT", "{}", run["facts"]["run.interrupted"]);
    assert_eq!(common::row(&run, "entry/syscall")["status"], "measured");
}

#[test]
fn killed_at_any_moment_it_leaves_nothing() {
    let home = Home::new();
    for after in [0, 70, 450] {
        assert_eq!(stop(&home, Signal::KILL, Duration::from_millis(after)), Some(libc::SIGKILL));
    }
}

#[test]
fn killed_while_it_writes_it_leaves_the_old_or_the_new() {
    // The run ends at about 970 ms of the 1 s that it may take.
    for after in [940, 970, 985, 1000] {
        kill_while_it_writes(Duration::from_millis(after));
    }
}

fn kill_while_it_writes(after: Duration) {
    let home = Home::new();
    let whole = common::document("20261121-015427-0001", None, 1.0).to_string();
    let out = home.file("mine.json", &whole);
    let mut run = tollgate(&home, &["run", "entry/call", "--time", "1", "--out", &out])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    std::thread::sleep(after);
    // It may have ended already; until it is waited for, its number is not reused.
    let _ = kill_process(Pid::from_child(&run), Signal::KILL);
    run.wait().expect("waited");
    home.output(["show", &out]);
    assert!(home.files().iter().all(|file| file == "mine.json"), "{:?}", home.files());
}

/// The time ends while the program is stopped: it has found its clock, but calibrated nothing.
#[test]
fn a_time_that_is_over_before_anything_is_measured_is_an_error_of_the_time() {
    let home = Home::new();
    let stopped = || {
        let mut command = tollgate(&home, &["run", "entry/call", "--time", "1", "--quiet"]);
        let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        wait_for("measuring", || (!children(run.id()).is_empty()).then_some(()));
        kill_process(Pid::from_child(&run), Signal::STOP).expect("our own child");
        std::thread::sleep(Duration::from_millis(1200));
        kill_process(Pid::from_child(&run), Signal::CONT).expect("our own child");
        run.wait_with_output().expect("waited")
    };
    // A program that is stopped late has already measured.
    let output = (0..20).map(|_| stopped()).find(|output| !output.status.success()).expect("one in time");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
    let line = one_line(&output.stderr);
    for part in ["in 1 s", "entry/call", "before its", "--time", "--processes"] {
        assert!(line.contains(part), "{line}");
    }
}

/// Stops a program after a while, before it ends, sends it signals, and continues it. `None` if it had ended.
fn interrupt(mut command: Command, after: Duration, signals: &[Signal]) -> Option<ExitStatus> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
    let pid = Pid::from_child(&child);
    std::thread::sleep(after);
    kill_process(pid, Signal::STOP).expect("our own child");
    let state = wait_for("the stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("our own child");
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        state.filter(|state| matches!(state, 'T' | 'Z'))
    });
    for signal in signals {
        kill_process(pid, *signal).expect("our own child");
    }
    kill_process(pid, Signal::CONT).expect("our own child");
    let status = child.wait().expect("waited");
    (state == 'T').then_some(status)
}

#[test]
fn each_verb_ends_by_the_signal_that_stops_it() {
    let home = Home::new();
    let captured = home.path().join("captured").display().to_string();
    let verbs: [&[&str]; 7] = [
        &["lab", "--on", "interpreter"],
        &["lab"],
        &["run", "entry", "--time", "1", "--out", "/dev/null"],
        &["inspect", "--capture", &captured],
        &["doctor"],
        &["trace", "--backend", "ptrace", "--", "sleep", "600"],
        &["trace", "--", "sleep", "600"],
    ];
    for verb in verbs {
        let mut met = 0;
        for (after, signal) in [
            (0, Signal::TERM),
            (15, Signal::INT),
            (60, Signal::TERM),
            (180, Signal::HUP),
            (400, Signal::TERM),
        ] {
            // While a command is traced, SIGINT is the command's alone, as in system(3).
            let signal = if verb[0] == "trace" && signal == Signal::INT { Signal::TERM } else { signal };
            let Some(status) = interrupt(tollgate(&home, verb), Duration::from_millis(after), &[signal])
            else {
                let _ = std::fs::remove_dir_all(&captured);
                continue;
            };
            met += 1;
            assert_eq!(status.signal(), Some(signal.as_raw()), "{verb:?} after {after} ms: {status}");
            let _ = std::fs::remove_dir_all(&captured);
        }
        assert!(met > 0, "{verb:?} always ended before");
    }
}

#[test]
fn a_signal_that_comes_twice_at_once_stops_it_once() {
    // timeout(1) signals its child and the child's group.
    let home = Home::new();
    let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let directory = temporary.path().display().to_string();
    for after in [300, 900] {
        let mut command = tollgate(&home, &["run", "files/create", "--time", "600", "--dir", &directory]);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        wait_for("the private directory", || {
            std::fs::read_dir(temporary.path()).expect("ours").next().map(drop)
        });
        std::thread::sleep(Duration::from_millis(after));
        for signal in [Signal::TERM, Signal::HUP] {
            kill_process(Pid::from_child(&run), signal).expect("our own child");
        }
        let status = run.wait().expect("waited");
        assert!(matches!(status.signal(), Some(libc::SIGTERM | libc::SIGHUP)), "{status}");
        assert!(std::fs::read_dir(temporary.path()).expect("ours").next().is_none());
    }
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let home = Home::new();
    let mut command = tollgate(&home, &["run", "entry/call", "--processes", "8", "--out", "/dev/null"]);
    // SAFETY: signal(2) may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        })
    };
    let status = interrupt(command, Duration::from_millis(300), &[Signal::HUP]);
    assert!(status.is_none_or(|status| status.success()), "{status:?}");
}

/// A setting of the shell before it becomes the program, and the program's message.
fn limited(limit: &str, rest: &str) -> std::process::Output {
    let script = format!("{limit}; exec '{}' {rest}", program().display());
    Command::new("bash").args(["-c", &script]).output().expect("started")
}

#[test]
fn a_file_size_limit_is_reported() {
    let temporary = tempfile::tempdir().expect("a directory");
    let file = temporary.path().join("out").display().to_string();
    let output = limited("ulimit -f 0", &format!("list > '{file}'"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(one_line(&output.stderr).contains("standard output cannot be written: File too large"));
}

#[test]
fn a_stack_that_is_too_small_is_reported() {
    let output = limited("ulimit -s 96", "list");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(one_line(&output.stderr).contains("`ulimit -s 512`"), "{output:?}");
    let output = limited("ulimit -s 512", "list");
    assert!(output.status.success(), "{output:?}");
}
