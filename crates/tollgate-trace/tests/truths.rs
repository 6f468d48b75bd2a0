//! Commands of which is known where their time goes.

mod common;

use common::{follow, follow_puppet};

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_sleep_sleeps() {
    let Some(told) = follow(&["ptrace"], &["sleep", "1"]) else { return };
    let (sleep, total) = (told.call("clock_nanosleep", "sleep"), told.call("clock_nanosleep", "total"));
    assert!(sleep > SECOND * 98 / 100 && total >= SECOND, "{told:?}");
    assert!(told.number("wall") >= SECOND);
    assert!(told.number("user") + told.number("sys") < SECOND / 10);
}

#[test]
fn a_reader_waits_as_long_as_its_writer_computes() {
    let Some(told) = follow_puppet(&["ptrace"], &["pipe", "300"]) else { return };
    assert_eq!(told.number("processes"), 2, "its child is followed");
    assert!(told.call("read", "sleep") > 250_000_000, "{told:?}");
    assert!(told.call("read", "on") < 50_000_000, "{told:?}");
    // On a machine with other work it computes for a part of that time only.
    assert!(told.number("user") > 20_000_000, "the child's time is the command's: {told:?}");
}

#[test]
fn counts_are_exact() {
    let Some(told) = follow_puppet(&["ptrace"], &["calls", "777"]) else { return };
    assert_eq!(told.call("getppid", "count"), 777);
    assert_eq!(told.call("execve", "count"), 1);
    assert_eq!((told.call("exit_group", "count"), told.call("exit_group", "unfinished")), (0, 1));
    let Some(told) = follow_puppet(&["ptrace"], &["errors", "55"]) else { return };
    assert!(told.call("close", "errors") == 55 && told.call("close", "count") >= 55, "{told:?}");
}

#[test]
fn calls_of_the_32_bit_table_are_told_apart() {
    let Some(told) = follow_puppet(&["ptrace"], &["calls32", "5"]) else { return };
    if std::os::unix::process::ExitStatusExt::signal(&told.status()) == Some(libc::SIGSEGV) {
        return println!("skipped: this kernel has no 32-bit calls");
    }
    assert_eq!(told.call("getppid_(32-bit)", "count"), 5, "{told:?}");
    let Some(told) = follow_puppet(&["ptrace", "only=getppid"], &["calls32", "5"]) else { return };
    assert_eq!(told.calls.keys().collect::<Vec<_>>(), ["getppid_(32-bit)"]);
}

#[test]
fn two_busy_processes_on_one_processor_wait_for_it() {
    let Some(puppet) = common::puppet() else { return };
    let script = format!("{0} busy 300 & {0} busy 300; wait", puppet.display());
    let Some(told) = follow(&["ptrace"], &["taskset", "-c", "0", "sh", "-c", &script]) else { return };
    if told.status().code() == Some(127) {
        return println!("skipped: there is no taskset");
    }
    let outside =
        told.lines.iter().find(|line| line.starts_with("outside=")).expect("what was outside of calls");
    let ready = outside.split("runqueue_ns: ").nth(1).and_then(|rest| rest.split([',', ' ']).next());
    let ready: u64 = ready.and_then(|number| number.parse().ok()).expect("a number");
    // Each of the two has half of the time, less where others have a part as well.
    assert!(ready > 200_000_000, "{outside}");
}

#[test]
fn a_read_of_a_cold_file_waits_for_the_disk() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = place.path().join("cold");
    std::fs::write(&path, vec![1; 16 << 20]).expect("a file");
    let Some(told) = follow_puppet(&["ptrace"], &["read", path.to_str().expect("letters")]) else { return };
    let disk = told.call("read", "disk") + told.call("fsync", "disk");
    if disk == 0 {
        return println!("skipped: here no file comes from a disk");
    }
    assert!(disk > told.call("read", "sleep") + told.call("fsync", "sleep"), "{told:?}");
}

/// A puppet that is followed in a root directory without /proc.
fn without_proc(how: &[&str], puppet_does: &[&str]) -> Option<common::Told> {
    // SAFETY: geteuid(2) has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root may change the root directory");
        return None;
    }
    let (_, place) = common::following(&[], &[])?;
    let puppet = common::puppet()?;
    for name in ["follow", "puppet"] {
        std::fs::copy(puppet.with_file_name(name), place.path().join(name)).expect("a copy");
    }
    let mut command = std::process::Command::new("/follow");
    command.args(how).args(["out=/out", "--", "/puppet"]).args(puppet_does);
    let root = place.path().to_owned();
    // SAFETY: two system calls.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, move || {
            std::os::unix::fs::chroot(&root)?;
            std::env::set_current_dir("/")
        });
    }
    assert!(command.status().expect("it starts").success());
    Some(common::Told::of(&place.path().join("out")))
}

#[test]
fn a_root_without_proc_has_the_same_counts() {
    let Some(told) = without_proc(&["ptrace", "tree", "files"], &["forks", "7"]) else { return };
    assert_eq!((told.number("processes"), told.call("getppid", "count")), (8, 7), "{told:?}");
}

#[test]
fn counts_are_those_of_strace() {
    let strace = std::process::Command::new("strace").arg("--version").output();
    if !strace.is_ok_and(|output| output.status.success()) {
        return println!("skipped: there is no strace");
    }
    let commands: [&[&str]; 3] = [
        &["ls", "-l", "/usr"],
        &["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=500"],
        &["sh", "-c", "cat /etc/passwd > /dev/null"],
    ];
    for command in commands {
        let place = tempfile::tempdir().expect("a directory");
        let out = place.path().join("strace");
        let mut strace = std::process::Command::new("strace");
        strace.args(["-f", "-c", "-o"]).arg(&out).arg("--").args(command);
        strace.output().expect("strace runs");
        let Some(told) = follow(&["ptrace"], command) else { return };
        let ours: Vec<_> = told
            .calls
            .iter()
            .filter(|(_, call)| call["count"] > 0)
            .map(|(name, call)| (name.clone(), call["count"], call["errors"]))
            .collect();
        assert_eq!(ours, table(&std::fs::read_to_string(out).expect("its table")), "{command:?}");
    }
}

/// Names, counts and errors of strace's table.
fn table(text: &str) -> Vec<(String, u64, u64)> {
    let number = |word: &str| word.parse().expect("a number");
    let mut rows: Vec<_> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.len() >= 5 && words[0].parse::<f64>().is_ok() && words.last() != Some(&"total"))
        .map(|words| {
            let errors = if words.len() == 6 { number(words[4]) } else { 0 };
            (words[words.len() - 1].to_owned(), number(words[3]), errors)
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn only_some_calls_are_followed_where_it_is_asked_for() {
    let Some(all) = follow_puppet(&["ptrace"], &["forks", "20"]) else { return };
    let Some(some) = follow_puppet(&["ptrace", "only=getppid,wait4"], &["forks", "20"]) else { return };
    assert_eq!(some.calls.keys().collect::<Vec<_>>(), ["getppid", "wait4"], "{some:?}");
    for call in ["getppid", "wait4"] {
        assert_eq!((some.call(call, "count"), all.call(call, "count")), (20, 20));
    }
    assert_eq!(some.number("processes"), 21);
    let Some(wrong) = follow_puppet(&["ptrace", "only=opneat"], &["calls", "1"]) else { return };
    assert_eq!(wrong.status().code(), Some(2));
    let message = String::from_utf8(wrong.output.expect("output").stderr).expect("text");
    assert!(message.contains("did you mean `openat`?"), "{message}");
}

#[test]
fn files_and_processes_are_told_apart() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("some file");
    std::fs::write(&path, vec![7; 12_345]).expect("a file");
    let script = format!("cat '{}' | cat > /dev/null; cat /nonexistent 2> /dev/null; true", path.display());
    let Some(told) = follow(&["ptrace", "files", "tree", "events=100000"], &["sh", "-c", &script]) else {
        return;
    };
    let has = |text: &str| told.lines.iter().any(|line| line.contains(text));
    for operation in ["open count=1 errors=0", "read count=2 errors=0 bytes=12345", "close count=1"] {
        assert!(has(&format!("file {} {operation}", path.display())), "{operation}: {:#?}", told.lines);
    }
    assert!(has("file /nonexistent open count=1 errors=1"), "{:#?}", told.lines);
    assert!(has("file pipe write"), "{:#?}", told.lines);
    let processes: Vec<_> = told.lines.iter().filter(|line| line.starts_with("process ")).collect();
    assert_eq!(processes.len() as u64, told.number("processes"));
    assert!(processes[0].contains("parent=None") && processes[0].contains("name=sh"), "{processes:?}");
    assert!(processes.iter().filter(|line| line.contains("name=cat")).count() == 3, "{processes:?}");
    let events = told.lines.iter().filter(|line| line.starts_with("event ")).count() as u64;
    assert_eq!(events, told.calls.values().map(|call| call["count"]).sum::<u64>());
}

#[test]
fn what_is_copied_in_the_kernel_is_time_of_its_file() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("a");
    std::fs::write(&path, vec![1; 1 << 16]).expect("a file");
    for backend in ["ptrace", "best"] {
        let Some(told) = follow_puppet(&[backend, "files"], &["copy", path.to_str().expect("letters")])
        else {
            return;
        };
        if told.call("copy_file_range", "errors") > 0 {
            return println!("skipped: this file system cannot");
        }
        let line = format!("file {} copy_file_range count=1 errors=0", path.display());
        assert!(told.lines.iter().any(|told| told.starts_with(&line)), "{backend}: {told:?}");
    }
}

#[test]
fn a_file_that_was_removed_keeps_its_path() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("gone");
    for backend in ["ptrace", "best"] {
        let Some(told) = follow_puppet(&[backend, "files"], &["removed", path.to_str().expect("letters")])
        else {
            return;
        };
        let line = format!("file {} write count=2 errors=0 bytes=2", path.display());
        assert!(told.lines.iter().any(|told| told.starts_with(&line)), "{backend}: {told:?}");
        assert!(!told.lines.iter().any(|told| told.contains("(deleted)")), "{backend}: {told:?}");
    }
}

#[test]
fn paths_that_cannot_be_read_are_counted() {
    let Some(told) = without_proc(&["ptrace", "files"], &["read", "/puppet"]) else { return };
    assert!(told.lines.iter().any(|line| line.contains("whose path could not be read")), "{told:?}");
}
