//! Stopped at any moment, the program leaves no process and no file.

mod common;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Home;
use rustix::process::{Pid, Signal, kill_process};

/// A run that takes longer than any test waits.
fn long_run(home: &Home) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["run", "gates", "--time", "30"])
        .env("XDG_DATA_HOME", home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started")
}

fn parent_of(stat: &str) -> Option<u32> {
    // After the command's name, which may hold anything, come the state and the parent.
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

/// Whether a process that was a bench process of ours, or the 32-bit program of one, still runs.
fn still_runs(pid: u32) -> bool {
    let names: [&[u8]; 2] = [b"tollgate-bench", b"tollgate-compat"];
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| names.iter().any(|name| line.starts_with(name)))
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(began.elapsed() < Duration::from_secs(10), "{what} did not happen"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stops a run when a bench process of it is at work; returns the exit status.
fn stop(home: &Home, signal: Signal, after: Duration) -> Option<i32> {
    let mut run = long_run(home);
    let bench = wait_for("measuring", || Some(children(run.id())).filter(|bench| !bench.is_empty()));
    std::thread::sleep(after);
    let bench: Vec<u32> = bench.into_iter().chain(children(run.id())).collect();
    let bench: Vec<u32> = bench.iter().copied().chain(bench.iter().flat_map(|&pid| children(pid))).collect();
    kill_process(Pid::from_child(&run), signal).expect("our own child");
    let began = Instant::now();
    let status = run.wait().expect("waited");
    assert!(began.elapsed() < Duration::from_secs(2), "it went on for {:?}", began.elapsed());
    wait_for("the end of the bench processes", || (!bench.iter().any(|&pid| still_runs(pid))).then_some(()));
    assert!(home.files().is_empty(), "{:?} was left behind", home.files());
    status.code()
}

#[test]
fn interrupted_it_says_so_and_leaves_nothing() {
    let home = Home::new();
    assert_eq!(stop(&home, Signal::INT, Duration::from_millis(300)), Some(130));
    assert_eq!(stop(&home, Signal::TERM, Duration::from_millis(900)), Some(143));
}

#[test]
fn killed_at_any_moment_it_leaves_nothing() {
    let home = Home::new();
    for after in [0, 70, 450] {
        assert_eq!(stop(&home, Signal::KILL, Duration::from_millis(after)), None);
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
    let mut run = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["run", "gates/call", "--time", "1", "--out", &out])
        .env("XDG_DATA_HOME", home.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    std::thread::sleep(after);
    // It may have ended already; until it is waited for, its number is its own.
    let _ = kill_process(Pid::from_child(&run), Signal::KILL);
    run.wait().expect("waited");
    home.output(["show", &out]);
    assert!(home.files().iter().all(|file| file == "mine.json"), "{:?}", home.files());
}
