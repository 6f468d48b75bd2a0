//! The directory in which files are measured: unusable places are refused in one line, the known facts are kept, and nothing of the place stays,
//! however the run ends. Tests that need root for block devices in memory report that they are skipped elsewhere.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::text::refusals;
use common::{Home, entries, expect_answer, is_root, one_line, program, readable_copy, row, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const CASE: &str = "files/stat";

#[test]
fn a_directory_that_cannot_be_used_is_refused_before_anything_is_measured() {
    let home = Home::new();
    let file = home.file("file", "");
    let absent = home.path().join("absent").display().to_string();
    for (directory, reason) in [(absent, "does not exist"), (file, "is not a directory")] {
        // A run that measured first would exceed the time limit.
        let line = home.refusal(["run", CASE, "--time", "900", "--dir", &directory]);
        assert_eq!(line, format!("--dir: {directory} {reason}"));
    }
    assert_eq!(home.files(), ["file"]);
}

#[test]
fn a_directory_that_no_case_uses_is_refused() {
    let home = Home::new();
    let lines = [
        "run entry/call --time 1 --dir=.",
        "run entry/call --time 1 --on=ram",
        "run files/stat --dir . --on ram",
        "run files/stat --on disk",
        "run files/stat --on ram:",
        "run files/stat --on ram:../x",
        "run files/stat --on ram:-t",
    ];
    insta::assert_snapshot!("refusals", refusals(&home, lines));
}

#[test]
fn a_directory_is_known_and_left_as_it_was() {
    let home = Home::new();
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().to_str().expect("text");
    let run = home.json(["run", CASE, "--processes", "1", "--format", "json", "--quiet", "--dir", directory]);
    expect_answer(row(&run, CASE));
    assert_eq!(row(&run, CASE)["status"], "measured");
    assert!(entries(temporary.path()).is_empty(), "{:?}", entries(temporary.path()));
    let canonical = temporary.path().canonicalize().expect("a path");
    assert_eq!(run["facts"]["files.dir"]["value"], canonical.to_str().expect("text"));
    assert!(run["facts"]["files.free"]["value"].as_f64().is_some_and(|free| free > 0.0));
    if Path::new("/proc/self/mountinfo").exists() {
        assert!(run["facts"]["files.fs"]["value"].is_string(), "{run}");
        assert!(run["facts"]["files.options"]["value"].is_string(), "{run}");
    }
}

#[test]
fn a_file_system_that_is_read_only_is_named() {
    let home = Home::new();
    let mount = home.path().join("mount");
    fs::create_dir(&mount).expect("made");
    let run = |script: &str| {
        let script = format!("mount -t tmpfs -o ro none \"$1\" || exit 99; cd / || exit 99; {script}");
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script, "sh"]).arg(&mount).arg(program());
        command.env("XDG_DATA_HOME", home.path()).output()
    };
    let named = run(&format!("exec \"$2\" run {CASE} --time 20 --dir \"$1\""));
    match named {
        Ok(output) if output.status.code() == Some(2) && !output.stderr.starts_with(b"unshare") => {
            let named = format!("--dir: {} is on a read-only file system", mount.display());
            assert_eq!(one_line(&output.stderr), named);
        }
        Ok(output) if output.status.success() => panic!("it was not noticed: {output:?}"),
        other => return println!("skipped: nothing can be mounted here: {other:?}"),
    }
    // Without a named directory the rest is measured.
    let usual = run(&format!(
        "cd \"$1\" && exec \"$2\" run entry/call {CASE} --processes 1 --quiet --format json --out /dev/null"
    ));
    let run = document(&usual.expect("it ran before"));
    assert_eq!(row(&run, "entry/call")["status"], "measured");
    assert_eq!(row(&run, CASE)["status"], "skipped");
    assert_eq!(
        row(&run, CASE)["why"],
        "the current directory is on a read-only file system; name another with --dir"
    );
    assert!(run["facts"].get("files.fs").is_none());
}

#[test]
fn the_next_run_removes_the_files_of_a_killed_one() {
    let home = Home::new();
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().to_str().expect("text");
    let precious = temporary.path().join("precious");
    fs::write(&precious, "x").expect("written");
    for after in [60, 250] {
        let mut run = start(&home, &["--dir", directory]);
        wait_for("the private directory", || (entries(temporary.path()).len() > 1).then_some(()));
        std::thread::sleep(Duration::from_millis(after));
        end(&mut run, Signal::KILL);
        assert_eq!(entries(temporary.path()).len(), 2, "what it made is there until the next run");
        home.output(["run", CASE, "--processes", "1", "--quiet", "--dir", directory]);
        assert_eq!(entries(temporary.path()), std::slice::from_ref(&precious));
    }
    let mut run = start(&home, &["--dir", directory]);
    wait_for("the private directory", || (entries(temporary.path()).len() > 1).then_some(()));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(end(&mut run, Signal::INT), Some(Signal::INT.as_raw()));
    assert_eq!(entries(temporary.path()), [precious]);
}

#[test]
fn memory_for_others_than_root_is_one_line() {
    let temporary = common::public_directory();
    let mut command = Command::new(readable_copy(temporary.path()));
    command
        .args(["run", CASE, "--on", "ram", "--time", "20"])
        .current_dir("/")
        .env("XDG_DATA_HOME", temporary.path().join("data"));
    if is_root() {
        command.uid(65534).gid(65534).env_remove("XDG_DATA_HOME").env("HOME", "/nonexistent");
    }
    let output = command.output().expect("started");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(one_line(&output.stderr).starts_with("--on ram needs root: "), "{output:?}");
}

#[test]
fn an_unknown_file_system_is_refused() {
    let Some(_memory) = Memory::take() else { return };
    let home = Home::new();
    assert_eq!(
        home.refusal(["run", CASE, "--time", "20", "--on", "ram:nosuch"]),
        "--on ram: mkfs.nosuch, which makes the file system, is not installed"
    );
}

#[test]
fn memory_is_known_and_nothing_of_it_stays() {
    let Some(memory) = Memory::take() else { return };
    let home = Home::new();
    let run = home.json(["run", CASE, "--processes", "1", "--format", "json", "--quiet", "--on", "ram"]);
    memory.expect_nothing();
    memory.expect_no_directory();
    assert_eq!(row(&run, CASE)["status"], "measured", "{run}");
    let known = |name: &str| {
        let fact = &run["facts"][name];
        assert_eq!(fact["status"], "known", "{name}: {fact}");
        fact["value"].clone()
    };
    assert_eq!(known("files.fs"), "ext4");
    assert_eq!(known("ram.fs"), "ext4");
    assert!(known("ram.mkfs").as_str().is_some_and(|line| line.starts_with("mke2fs ")));
    let options = known("files.options");
    assert!(
        options.as_str().is_some_and(|options| options.split(',').any(|one| one == "nosuid")),
        "{options}"
    );
    let amount = |name: &str| known(name).as_f64().expect("a number");
    let total = run["facts"]["memory.total"]["value"].as_f64().expect("a number");
    assert!(amount("ram.size") > total, "a device may be larger than memory");
    assert!(amount("ram.taken.before") < amount("ram.size") / 10.0, "untouched space costs nothing");
    assert!(amount("ram.taken.after") > 0.0);
    assert_eq!(known("files.device"), known_device(&run), "the file system is on the device that was made");
}

fn known_device(run: &Value) -> Value {
    let source = run["facts"]["ram.device"]["source"].as_str().expect("a device");
    Value::from(source.rsplit('/').next().expect("a name"))
}

#[test]
fn memory_is_given_back_at_once_when_the_run_is_interrupted() {
    let Some(memory) = Memory::take() else { return };
    let home = Home::new();
    // Whether an interrupted run removes its directory.
    let leaves_none = |signal: Signal, after| {
        let mut run = start(&home, &["--on", "ram"]);
        let own = format!(".tollgate-ram-{}-", run.id());
        let is_own = |path: &PathBuf| path.to_string_lossy().contains(&own);
        wait_for("the private directory", || Memory::directories().iter().any(is_own).then_some(()));
        std::thread::sleep(Duration::from_millis(after));
        assert_eq!(end(&mut run, signal), Some(signal.as_raw()));
        memory.expect_nothing();
        !Memory::directories().iter().any(is_own)
    };
    let removed = [(Signal::INT, 0), (Signal::TERM, 30), (Signal::INT, 500)]
        .map(|(signal, after)| leaves_none(signal, after));
    // On a busy machine the kernel may hold a mount longer than a run waits: then the next run removes the directory.
    let once = removed.contains(&true) || (0..30).any(|_| leaves_none(Signal::INT, 200));
    assert!(once, "each run left its directory");
    home.output(["run", CASE, "--processes", "1", "--quiet", "--on", "ram"]);
    memory.expect_no_directory();
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn memory_is_given_back_when_the_run_is_killed() {
    let Some(memory) = Memory::take() else { return };
    let home = Home::new();
    for after in [0, 5, 10, 15, 20, 30, 45, 80, 200, 600] {
        let mut run = start(&home, &["--on", "ram"]);
        wait_for("the private directory", || (!Memory::directories().is_empty()).then_some(()));
        std::thread::sleep(Duration::from_millis(after));
        end(&mut run, Signal::KILL);
        memory.expect_nothing();
    }
    home.output(["run", CASE, "--processes", "1", "--quiet", "--on", "ram"]);
    memory.expect_nothing();
    memory.expect_no_directory();
}

/// Then mounts are made outside of a namespace, and outlive a killed program.
#[test]
fn without_a_namespace_the_next_run_takes_away_what_a_killed_one_left() {
    let Some(memory) = Memory::take() else { return };
    let home = Home::new();
    for (after, next) in [(0, "--on=ram"), (20, "--dir=."), (400, "--on=ram")] {
        let mut command = command(&home, &["--on", "ram"]);
        // SAFETY: two system calls, on memory that was made before.
        unsafe { command.pre_exec(|| refuse(libc::SYS_unshare)) };
        let mut run = command.spawn().expect("started");
        wait_for("the private directory", || (!Memory::directories().is_empty()).then_some(()));
        std::thread::sleep(Duration::from_millis(after));
        end(&mut run, Signal::KILL);
        if after == 400 {
            assert_eq!(Memory::mounts().len(), 2, "they were not in the open: this tests nothing");
        }
        // The first run leaves files that a child of the killed run, such as mkfs, still uses.
        for _ in 0..3 {
            home.output(["run", CASE, "--processes", "1", "--quiet", next]);
            if Memory::mounts().is_empty() && Memory::devices().is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        memory.expect_nothing();
        memory.expect_no_directory();
    }
}

/// From now on this call fails with EPERM.
fn refuse(call: libc::c_long) -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let filter = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let program = [
        filter(LOAD, 0, 0),
        filter(EQUAL, 1, call as u32),
        filter(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        filter(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: plain numbers, and a program that outlives the call.
    let outcome = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The right to make devices in memory, held by one test at a time: each checks the whole machine.
struct Memory {
    _alone: MutexGuard<'static, ()>,
}

impl Memory {
    fn take() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        if !is_root() {
            println!("skipped: only root may make a block device and mount it");
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let home = Home::new();
        let output = home
            .tollgate(["run", CASE, "--processes", "1", "--quiet", "--on", "ram"])
            .output()
            .expect("started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let without = ["needs root", "loop", "mkfs.ext4", "no file system"];
        if output.status.code() == Some(2) && without.iter().any(|word| stderr.contains(word)) {
            println!("skipped: no device in memory can be made here: {stderr}");
            return None;
        }
        assert!(output.status.success(), "{output:?}");
        Some(Self { _alone: alone })
    }

    /// The kernel frees a killed process's resources a moment after its end.
    fn expect_nothing(&self) {
        wait_for("the end of devices and mounts", || {
            (Self::devices().is_empty() && Self::mounts().is_empty()).then_some(())
        });
    }

    fn expect_no_directory(&self) {
        assert!(Self::directories().is_empty(), "{:?}", Self::directories());
    }

    fn devices() -> Vec<String> {
        let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
        let backing = entries.filter_map(|entry| {
            let file = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
            file.contains("tollgate-ram").then(|| format!("{}: {file}", entry.path().display()))
        });
        backing.collect()
    }

    fn mounts() -> Vec<String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        mounts.lines().filter(|line| line.contains(".tollgate-ram-")).map(str::to_owned).collect()
    }

    fn directories() -> Vec<PathBuf> {
        let all = ["/run", "/tmp"].map(|under| entries(Path::new(under)));
        let is_ours = |path: &PathBuf| path.to_string_lossy().contains("/.tollgate-ram-");
        all.into_iter().flatten().filter(is_ours).collect()
    }
}

/// A run that takes longer than any test waits.
fn command(home: &Home, options: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(["run", CASE, "--time", "600", "--quiet"]).args(options);
    command.env("XDG_DATA_HOME", home.path()).current_dir(home.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn start(home: &Home, options: &[&str]) -> Child {
    command(home, options).spawn().expect("started")
}

/// Sends it a signal and waits; returns the signal that ended it.
fn end(run: &mut Child, signal: Signal) -> Option<i32> {
    kill_process(Pid::from_child(run), signal).expect("our own child");
    run.wait().expect("waited").signal()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}
