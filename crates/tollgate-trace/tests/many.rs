//! Many processes and threads, and some that end in unusual ways: all are counted, and nothing is left over.

mod common;

use common::trace_puppet;

#[test]
fn ten_thousand_processes() {
    let Some(report) = trace_puppet(&["ptrace"], &["forks", "10000"]) else { return };
    assert_eq!((report.number("processes"), report.number("threads")), (10_001, 10_001));
    assert_eq!(report.call("getppid", "count"), 10_000);
    assert_eq!(report.call("exit_group", "unfinished"), 10_001);
    assert_eq!(report.status().code(), Some(0));
}

#[test]
fn five_hundred_threads() {
    let Some(report) = trace_puppet(&["ptrace", "tree"], &["threads", "500"]) else { return };
    assert_eq!((report.number("processes"), report.number("threads")), (1, 501));
    assert_eq!(report.call("getppid", "count"), 500);
    assert_eq!(report.call("exit", "unfinished"), 500);
    assert!(
        report.lines.iter().any(|line| line.starts_with("process 0") && line.contains("threads=501")),
        "{report:?}"
    );
}

#[test]
fn a_thread_that_executes_a_program_becomes_the_process() {
    let Some(report) = trace_puppet(&["ptrace", "tree"], &["exec"]) else { return };
    assert_eq!(report.status().code(), Some(0));
    assert_eq!((report.number("processes"), report.number("threads")), (1, 6));
    assert_eq!(report.call("execve", "count"), 2);
    // The four idle threads, and the leader, whose number the other thread took over.
    assert_eq!(report.call("clock_nanosleep", "unfinished"), 5, "{report:?}");
    let line = report.lines.iter().find(|line| line.starts_with("process 0")).expect("the process");
    assert!(line.contains("name=true execs=2") && line.contains("ended=Some"), "{line}");
}

#[test]
fn a_process_that_is_killed_in_a_call_leaves_it_unfinished() {
    let Some(report) = trace_puppet(&["ptrace"], &["killed"]) else { return };
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&report.status()), Some(libc::SIGKILL));
    assert_eq!(report.number("processes"), 2);
    let (finished, unfinished) =
        (report.call("clock_nanosleep", "count"), report.call("clock_nanosleep", "unfinished"));
    assert_eq!((finished, unfinished), (0, 1), "{report:?}");
}

#[test]
fn another_user_is_traced_too() {
    // SAFETY: geteuid(2) has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: only root may become another user");
    }
    let Some(puppet) = common::puppet() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("our own");
    };
    open(directory.path(), 0o777);
    let copies = ["trace", "puppet"].map(|name| {
        let copy = directory.path().join(name);
        std::fs::copy(puppet.with_file_name(name), &copy).expect("a copy");
        open(&copy, 0o755);
        copy
    });
    for only in [None, Some("only=getppid")] {
        let out = directory.path().join("out");
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copies[0]).arg("best");
        command
            .args(only)
            .arg(format!("out={}", out.display()))
            .arg("--")
            .arg(&copies[1])
            .args(["forks", "9"]);
        match command.current_dir("/").output() {
            Err(error) => return println!("skipped: setpriv: {error}"),
            Ok(output) => assert_eq!(output.status.code(), Some(0), "{output:?}"),
        }
        let report = common::Report::read(&out);
        assert_eq!(report.head["backend"], "Ptrace", "{report:?}");
        assert!(report.has_note("BPF cannot trace here"), "{report:?}");
        assert_eq!(report.call("getppid", "count"), 9);
        assert_eq!(report.has_note("no_new_privs"), only.is_some());
    }
}
