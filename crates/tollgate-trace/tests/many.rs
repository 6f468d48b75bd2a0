//! Many processes and threads, and those that end in unusual ways: all are counted, and nothing is left.

mod common;

use common::follow_puppet;

#[test]
fn ten_thousand_processes() {
    let Some(told) = follow_puppet(&["ptrace"], &["forks", "10000"]) else { return };
    assert_eq!((told.number("processes"), told.number("threads")), (10_001, 10_001));
    assert_eq!(told.call("getppid", "count"), 10_000);
    assert_eq!(told.call("exit_group", "unfinished"), 10_001);
    assert_eq!(told.status().code(), Some(0));
}

#[test]
fn five_hundred_threads() {
    let Some(told) = follow_puppet(&["ptrace", "tree"], &["threads", "500"]) else { return };
    assert_eq!((told.number("processes"), told.number("threads")), (1, 501));
    assert_eq!(told.call("getppid", "count"), 500);
    assert_eq!(told.call("exit", "unfinished"), 500);
    assert!(
        told.lines.iter().any(|line| line.starts_with("process 0") && line.contains("threads=501")),
        "{told:?}"
    );
}

#[test]
fn a_thread_that_executes_a_program_becomes_the_process() {
    let Some(told) = follow_puppet(&["ptrace", "tree"], &["exec"]) else { return };
    assert_eq!(told.status().code(), Some(0));
    assert_eq!((told.number("processes"), told.number("threads")), (1, 6));
    assert_eq!(told.call("execve", "count"), 2);
    // The four idle threads, and the first one, whose number the other took.
    assert_eq!(told.call("clock_nanosleep", "unfinished"), 5, "{told:?}");
    let line = told.lines.iter().find(|line| line.starts_with("process 0")).expect("the process");
    assert!(line.contains("name=true execs=2") && line.contains("ended=Some"), "{line}");
}

#[test]
fn who_is_killed_in_a_call_leaves_it_unfinished() {
    let Some(told) = follow_puppet(&["ptrace"], &["killed"]) else { return };
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&told.status()), Some(libc::SIGKILL));
    assert_eq!(told.number("processes"), 2);
    let (finished, unfinished) =
        (told.call("clock_nanosleep", "count"), told.call("clock_nanosleep", "unfinished"));
    assert_eq!((finished, unfinished), (1, 1), "{told:?}");
}

#[test]
fn another_user_is_followed_too() {
    // SAFETY: geteuid(2) has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: only root may become another user");
    }
    let Some(puppet) = common::puppet() else { return };
    let place = tempfile::tempdir().expect("a directory");
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("our own");
    };
    open(place.path(), 0o777);
    let copies = ["follow", "puppet"].map(|name| {
        let copy = place.path().join(name);
        std::fs::copy(puppet.with_file_name(name), &copy).expect("a copy");
        open(&copy, 0o755);
        copy
    });
    for only in [None, Some("only=getppid")] {
        let out = place.path().join("out");
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
        let told = common::Told::of(&out);
        assert_eq!(told.head["backend"], "Ptrace", "{told:?}");
        assert!(told.has_note("BPF cannot follow here"), "{told:?}");
        assert_eq!(told.call("getppid", "count"), 9);
        assert_eq!(told.has_note("no_new_privs"), only.is_some());
    }
}
