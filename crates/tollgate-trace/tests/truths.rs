//! Commands whose distribution of time is known.

mod common;

use common::{run_traced, trace_puppet};

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_sleep_sleeps() {
    let Some(report) = run_traced(&["ptrace"], &["sleep", "1"]) else { return };
    let (sleep, total) = (report.call("clock_nanosleep", "sleep"), report.call("clock_nanosleep", "total"));
    assert!(sleep > SECOND * 98 / 100 && total >= SECOND, "{report:?}");
    assert!(report.number("wall") >= SECOND);
    assert!(report.number("user") + report.number("sys") < SECOND / 10);
}

#[test]
fn a_reader_waits_as_long_as_its_writer_computes() {
    let Some(report) = trace_puppet(&["ptrace"], &["pipe", "300"]) else { return };
    assert_eq!(report.number("processes"), 2, "its child is traced");
    assert!(report.call("read", "sleep") > 250_000_000, "{report:?}");
    assert!(report.call("read", "on") < report.call("read", "sleep") / 2, "{report:?}");
    // The kernel divides the sum by what ticks have seen.
    let used = report.number("user") + report.number("sys");
    assert!(used >= 300_000_000, "the child's time is the command's: {report:?}");
}

#[test]
fn counts_are_exact() {
    let Some(report) = trace_puppet(&["ptrace"], &["calls", "777"]) else { return };
    assert_eq!(report.call("getppid", "count"), 777);
    assert_eq!(report.call("execve", "count"), 1);
    assert_eq!((report.call("exit_group", "count"), report.call("exit_group", "unfinished")), (0, 1));
    let Some(report) = trace_puppet(&["ptrace"], &["errors", "55"]) else { return };
    assert!(report.call("close", "errors") == 55 && report.call("close", "count") >= 55, "{report:?}");
}

#[test]
fn calls_of_the_32_bit_table_are_counted_by_themselves() {
    let Some(report) = trace_puppet(&["ptrace"], &["calls32", "5"]) else { return };
    if std::os::unix::process::ExitStatusExt::signal(&report.status()) == Some(libc::SIGSEGV) {
        return println!("skipped: this kernel has no 32-bit calls");
    }
    assert_eq!(report.call("getppid_(32-bit)", "count"), 5, "{report:?}");
    let Some(report) = trace_puppet(&["ptrace", "only=getppid"], &["calls32", "5"]) else { return };
    assert_eq!(report.calls.keys().collect::<Vec<_>>(), ["getppid_(32-bit)"]);
}

#[test]
fn two_busy_processes_on_one_processor_wait_for_it() {
    let Some(puppet) = common::puppet() else { return };
    let script = format!("'{0}' busy 300 & '{0}' busy 300; wait", puppet.display());
    let Some(report) = run_traced(&["ptrace"], &["taskset", "-c", "0", "sh", "-c", &script]) else { return };
    if report.status().code() == Some(127) {
        return println!("skipped: there is no taskset");
    }
    let outside =
        report.lines.iter().find(|line| line.starts_with("outside=")).expect("what was outside of calls");
    let ready = outside.split("runqueue_ns: ").nth(1).and_then(|rest| rest.split([',', ' ']).next());
    let ready: u64 = ready.and_then(|number| number.parse().ok()).expect("a number");
    // While each of the two computes, the other waits.
    assert!(ready > 200_000_000, "{outside}");
}

#[test]
fn a_read_of_a_cold_file_waits_for_the_disk() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = directory.path().join("cold");
    std::fs::write(&path, vec![1; 16 << 20]).expect("a file");
    let Some(report) = trace_puppet(&["ptrace"], &["read", path.to_str().expect("letters")]) else { return };
    let disk = report.call("read", "disk") + report.call("fsync", "disk");
    if disk == 0 {
        return println!("skipped: here no file comes from a disk");
    }
    assert!(disk > report.call("read", "sleep") + report.call("fsync", "sleep"), "{report:?}");
}

/// Traces a puppet in a root directory without /proc.
fn without_proc(how: &[&str], puppet_does: &[&str]) -> Option<common::Report> {
    // SAFETY: geteuid(2) has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root may change the root directory");
        return None;
    }
    let (_, directory) = common::tracing(&[], &[])?;
    let puppet = common::puppet()?;
    for name in ["trace", "puppet"] {
        std::fs::copy(puppet.with_file_name(name), directory.path().join(name)).expect("a copy");
    }
    let mut command = std::process::Command::new("/trace");
    command.args(how).args(["out=/out", "--", "/puppet"]).args(puppet_does);
    let root = directory.path().to_owned();
    // SAFETY: two system calls.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, move || {
            std::os::unix::fs::chroot(&root)?;
            std::env::set_current_dir("/")
        });
    }
    assert!(command.status().expect("it starts").success());
    Some(common::Report::read(&directory.path().join("out")))
}

#[test]
fn a_root_without_proc_has_the_same_counts() {
    let Some(report) = without_proc(&["ptrace", "tree", "files"], &["forks", "7"]) else { return };
    assert_eq!((report.number("processes"), report.call("getppid", "count")), (8, 7), "{report:?}");
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
        let directory = tempfile::tempdir().expect("a directory");
        let out = directory.path().join("strace");
        let mut strace = std::process::Command::new("strace");
        strace.args(["-f", "-c", "-o"]).arg(&out).arg("--").args(command);
        strace.output().expect("strace runs");
        let Some(report) = run_traced(&["ptrace"], command) else { return };
        let ours: Vec<_> = report
            .calls
            .iter()
            .filter(|(_, call)| call["count"] > 0)
            .map(|(name, call)| (name.clone(), call["count"], call["errors"]))
            .collect();
        assert_eq!(ours, table(&std::fs::read_to_string(out).expect("its table")), "{command:?}");
    }
}

/// Parses names, counts and errors of strace's table.
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
fn only_some_calls_are_traced_where_it_is_asked_for() {
    let Some(all) = trace_puppet(&["ptrace"], &["forks", "20"]) else { return };
    let Some(some) = trace_puppet(&["ptrace", "only=getppid,wait4"], &["forks", "20"]) else { return };
    assert_eq!(some.calls.keys().collect::<Vec<_>>(), ["getppid", "wait4"], "{some:?}");
    for call in ["getppid", "wait4"] {
        assert_eq!((some.call(call, "count"), all.call(call, "count")), (20, 20));
    }
    assert_eq!(some.number("processes"), 21);
    let Some(wrong) = trace_puppet(&["ptrace", "only=opneat"], &["calls", "1"]) else { return };
    assert_eq!(wrong.status().code(), Some(2));
    let message = String::from_utf8(wrong.output.expect("output").stderr).expect("text");
    assert!(message.contains("did you mean `openat`?"), "{message}");
}

#[test]
fn files_and_processes_are_counted_by_themselves() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("some file");
    std::fs::write(&path, vec![7; 12_345]).expect("a file");
    let script = format!("cat '{}' | cat > /dev/null; cat /nonexistent 2> /dev/null; true", path.display());
    let Some(report) = run_traced(&["ptrace", "files", "tree", "events=100000"], &["sh", "-c", &script])
    else {
        return;
    };
    let has = |text: &str| report.lines.iter().any(|line| line.contains(text));
    for operation in ["open count=1 errors=0", "read count=2 errors=0 bytes=12345", "close count=1"] {
        assert!(has(&format!("file {} {operation}", path.display())), "{operation}: {:#?}", report.lines);
    }
    assert!(has("file /nonexistent open count=1 errors=1"), "{:#?}", report.lines);
    assert!(has("file pipe write"), "{:#?}", report.lines);
    let processes: Vec<_> = report.lines.iter().filter(|line| line.starts_with("process ")).collect();
    assert_eq!(processes.len() as u64, report.number("processes"));
    assert!(processes[0].contains("parent=None") && processes[0].contains("name=sh"), "{processes:?}");
    assert!(processes.iter().filter(|line| line.contains("name=cat")).count() == 3, "{processes:?}");
    let events = report.lines.iter().filter(|line| line.starts_with("event ")).count() as u64;
    assert_eq!(events, report.calls.values().map(|call| call["count"]).sum::<u64>());
}

#[test]
fn what_is_copied_in_the_kernel_is_time_of_its_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a");
    std::fs::write(&path, vec![1; 1 << 16]).expect("a file");
    for backend in ["ptrace", "best"] {
        let Some(report) = trace_puppet(&[backend, "files"], &["copy", path.to_str().expect("letters")])
        else {
            return;
        };
        if report.call("copy_file_range", "errors") > 0 {
            return println!("skipped: this file system cannot");
        }
        let line = format!("file {} copy_file_range count=1 errors=0", path.display());
        assert!(report.lines.iter().any(|report| report.starts_with(&line)), "{backend}: {report:?}");
    }
}

#[test]
fn a_file_that_was_removed_keeps_its_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gone");
    for backend in ["ptrace", "best"] {
        let Some(report) = trace_puppet(&[backend, "files"], &["removed", path.to_str().expect("letters")])
        else {
            return;
        };
        let line = format!("file {} write count=2 errors=0 bytes=2", path.display());
        assert!(report.lines.iter().any(|report| report.starts_with(&line)), "{backend}: {report:?}");
        assert!(!report.lines.iter().any(|report| report.contains("(deleted)")), "{backend}: {report:?}");
    }
}

#[test]
fn paths_that_cannot_be_read_are_counted() {
    let Some(report) = without_proc(&["ptrace", "files"], &["read", "/puppet"]) else { return };
    assert!(report.lines.iter().any(|line| line.contains("whose path could not be read")), "{report:?}");
}
