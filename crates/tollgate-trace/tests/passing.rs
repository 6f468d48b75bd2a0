//! A traced command behaves as if it ran alone: streams, signals, and how it ends.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Report, eventually, run_traced, send, state, tracing};
use tollgate_os::signals::{self, Disposition};

const BACKENDS: [&str; 2] = ["ptrace", "best"];

#[test]
fn exit_statuses_and_signals_are_passed_on() {
    for backend in BACKENDS {
        for status in [0, 1, 7, 126, 127, 255] {
            let script = format!("exit {status}");
            let Some(report) = run_traced(&[backend], &["sh", "-c", &script]) else { return };
            assert_eq!(report.status().code(), Some(status));
        }
        for signal in
            [libc::SIGTERM, libc::SIGKILL, libc::SIGSEGV, libc::SIGPIPE, libc::SIGXFSZ, libc::SIGINT]
        {
            let script = format!("kill -{signal} $$");
            let Some(report) = run_traced(&[backend], &["sh", "-c", &script]) else { return };
            assert_eq!(report.status().signal(), Some(signal), "{backend}");
            assert!(!report.status().core_dumped());
        }
    }
}

#[test]
fn what_cannot_be_started_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str, mode| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("our file");
        path.display().to_string()
    };
    let plain = file("plain", "echo hello $1", 0o755);
    let missing = file("missing", "#!/nonexistent/interpreter\n", 0o755);
    let garbage = file("forbidden", "echo no", 0o644);
    for backend in BACKENDS {
        for (command, status, message) in [
            ("no-such-program-here", 127, "was not found in PATH"),
            ("/nonexistent/program", 127, "there is no file"),
            (missing.as_str(), 126, "the interpreter that it names does not"),
            (garbage.as_str(), 126, "may not be executed"),
            ("/", 126, "is a directory"),
        ] {
            let Some(report) = run_traced(&[backend], &[command]) else { return };
            assert_eq!(report.status().code(), Some(status), "{command}");
            let error = String::from_utf8(report.output.expect("output").stderr).expect("text");
            assert!(error.contains(message) && error.contains(command), "{error}");
        }
        // As execvp(3) does.
        let Some(report) = run_traced(&[backend], &[&plain, "you"]) else { return };
        assert_eq!(report.output.expect("output").stdout, b"hello you\n");
    }
}

#[test]
fn streams_and_what_is_inherited_are_the_commands() {
    // The process that runs the tests may have leaked descriptors.
    let alone =
        Command::new("ls").arg("/proc/self/fd").stdin(Stdio::null()).output().expect("it runs").stdout;
    let alone = String::from_utf8_lossy(&alone).into_owned();
    for backend in BACKENDS {
        let Some((mut tracing, _place)) =
            tracing(&[backend], &["sh", "-c", "cat; echo wrong >&2; ls /proc/self/fd"])
        else {
            return;
        };
        tracing.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = tracing.spawn().expect("it starts");
        child.stdin.take().expect("a pipe").write_all(b"through\n").expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("through\n{alone}"),
            "no descriptor is ours"
        );
        assert_eq!(output.stderr, b"wrong\n");
    }
}

#[test]
fn ignored_signals_stay_ignored_and_no_others_are() {
    for ignored in [&[][..], &[libc::SIGPIPE, libc::SIGHUP][..]] {
        let prepare = |command: &mut Command| {
            let all = &[libc::SIGPIPE, libc::SIGHUP, libc::SIGXFSZ];
            signals::start_with(command, Disposition::default_with(0), all);
            signals::start_with(command, Disposition::ignored(), ignored);
        };
        // `sh` has no runtime that changes streams, as Rust does.
        let script = "grep -E 'SigIgn|SigBlk' /proc/self/status";
        let mut alone = Command::new("sh");
        alone.args(["-c", script]);
        prepare(&mut alone);
        let alone = alone.output().expect("it runs").stdout;
        for backend in BACKENDS {
            let Some((mut tracing, _place)) = tracing(&[backend], &["sh", "-c", script]) else { return };
            prepare(&mut tracing);
            let traced = tracing.output().expect("it runs").stdout;
            assert_eq!(String::from_utf8_lossy(&traced), String::from_utf8_lossy(&alone), "{backend}");
        }
    }
}

/// Starts a script that reports when it is ready, and waits for that.
fn ready(backend: &str, script: &str) -> Option<(Child, [tempfile::TempDir; 2], std::path::PathBuf)> {
    let mark = tempfile::tempdir().expect("a directory");
    let path = mark.path().join("ready");
    let script = script.replace("READY", &format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'", path.display()));
    let (mut tracing, directory) = tracing(&[backend], &["sh", "-c", &script])?;
    let child = tracing.stdout(Stdio::null()).process_group(0).spawn().expect("it starts");
    eventually("the command's start", || path.exists());
    Some((child, [mark, directory], path))
}

fn command_of(path: &std::path::Path) -> libc::pid_t {
    fs::read_to_string(path).expect("its number").trim().parse().expect("a number")
}

#[test]
fn signals_to_the_tracer_alone_go_to_the_command() {
    for backend in BACKENDS {
        for signal in ["TERM", "HUP", "USR1", "USR2"] {
            let script = format!("trap 'exit 9' {signal}; READY; while true; do sleep 0.01; done");
            let Some((mut child, _mark, _)) = ready(backend, &script) else { return };
            let number = match signal {
                "TERM" => libc::SIGTERM,
                "HUP" => libc::SIGHUP,
                "USR1" => libc::SIGUSR1,
                _ => libc::SIGUSR2,
            };
            send(child.id() as libc::pid_t, number);
            assert_eq!(child.wait().expect("it ends").code(), Some(9), "{backend} {signal}");
        }
    }
}

#[test]
fn a_command_stops_and_goes_on() {
    for backend in BACKENDS {
        let Some((mut child, mark, path)) =
            ready(backend, "READY; i=0; while [ ! -e ${0}x ]; do i=1; done; exit 8")
        else {
            return;
        };
        let command = command_of(&path);
        send(command, libc::SIGSTOP);
        eventually("its stop", || matches!(state(command), 'T' | 't'));
        std::thread::sleep(Duration::from_millis(50));
        assert!(matches!(state(command), 'T' | 't'), "it stays stopped");
        send(command, libc::SIGCONT);
        eventually("its going on", || matches!(state(command), 'R' | 'S'));
        send(command, libc::SIGTERM);
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGTERM));
        drop(mark);
    }
}

#[test]
fn a_command_goes_on_when_its_tracer_is_killed() {
    for backend in BACKENDS {
        let directory = tempfile::tempdir().expect("a directory");
        let done = directory.path().join("done");
        let script = format!(
            "READY; for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; sleep 0.02; done; : > {}",
            done.display()
        );
        let Some((mut child, _mark, _)) = ready(backend, &script) else { return };
        child.kill().expect("our child");
        child.wait().expect("it was killed");
        eventually("the command's end", || done.exists());
    }
}

/// Traces the puppet as a daemon, which would keep pipes open; returns how long that took, and the report.
fn daemon(backend: &str, linger: &str, seconds: &str) -> Option<(Duration, Report)> {
    let puppet = common::puppet()?;
    let puppet = puppet.to_str().expect("a path of letters");
    let linger = format!("linger={linger}");
    let (mut tracing, directory) = tracing(&[backend, &linger], &[puppet, "daemon", seconds])?;
    let began = Instant::now();
    let status =
        tracing.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
    assert_eq!(status.code(), Some(0));
    Some((began.elapsed(), Report::read(&directory.path().join("out"))))
}

#[test]
fn what_a_command_leaves_is_waited_for_and_then_let_go() {
    for backend in BACKENDS {
        let Some((took, report)) = daemon(backend, "600", "1") else { return };
        assert!(took >= Duration::from_secs(1), "{backend}: it was waited for");
        let wall = Duration::from_nanos(report.number("wall"));
        assert!(wall < took, "the command itself had ended before: {report:?}");
        assert!(!report.has_note("still running"), "{report:?}");
        for linger in ["0", "0.2"] {
            // The daemon still runs, even if the machine releases it late.
            let Some((_, report)) = daemon(backend, linger, "30") else { return };
            assert!(report.has_note("still running"), "{report:?}");
        }
    }
}

#[test]
fn a_command_with_a_filter_is_traced_to_its_end() {
    let Some((took, report)) = daemon("only=getppid", "0", "1") else { return };
    if report.head["backend"] == "Ptrace" {
        assert!(took >= Duration::from_secs(1), "its calls would fail alone: {report:?}");
    }
    assert!(!report.has_note("killed"), "{report:?}");
}

#[test]
fn what_is_let_go_goes_on_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let done = directory.path().join("done");
    let script = format!(
        "(while [ ! -e '{0}.go' ]; do sleep 0.05; done; /bin/true; : > '{0}') & exit 0",
        done.display()
    );
    let Some((mut tracing, out)) = tracing(&["ptrace", "linger=0.1"], &["sh", "-c", &script]) else {
        return;
    };
    let status = tracing.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it starts");
    assert_eq!(status.code(), Some(0));
    assert!(Report::read(&out.path().join("out")).has_note("still running"));
    assert!(!done.exists());
    fs::write(done.with_extension("go"), "").expect("a file");
    eventually("the end of what was let go", || done.exists());
}

#[test]
fn where_no_backend_works_the_command_runs_and_its_times_are_known() {
    let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exit 6";
    for by in ["best", "ptrace"] {
        let Some((mut tracing, directory)) = tracing(&[by], &["sh", "-c", script]) else { return };
        // SAFETY: two system calls on memory of the closure.
        unsafe { tracing.pre_exec(refuse_to_trace) };
        let output = tracing.output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        if by == "ptrace" {
            assert_eq!(output.status.code(), Some(2));
            assert!(error.contains("ptrace(2) cannot trace here: Operation not permitted"), "{error}");
            continue;
        }
        assert_eq!(output.status.code(), Some(6), "{error}");
        let report = Report::read(&directory.path().join("out"));
        assert_eq!((report.head["backend"].as_str(), report.number("processes")), ("Rusage", 0));
        assert!(
            report.calls.is_empty() && report.number("user") > 0 && report.number("wall") > 0,
            "{report:?}"
        );
        assert!(
            report.has_note("BPF cannot trace here") && report.has_note("ptrace(2) cannot trace here"),
            "{report:?}"
        );
    }
}

/// Installs a seccomp profile without ptrace(2) and bpf(2), as in containers.
fn refuse_to_trace() -> std::io::Result<()> {
    let one = |code: u32, k: u32, jt: u8| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    let number = one(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let is = |call: libc::c_long, jump| one(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, jump);
    let answer = |what: u32| one(libc::BPF_RET | libc::BPF_K, what, 0);
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        number,
        is(libc::SYS_ptrace, 2),
        is(libc::SYS_bpf, 1),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(refused),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter lives until the kernel has copied it.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn a_command_that_loses_privileges_is_noted() {
    let Some(report) = run_traced(&["ptrace"], &["strace", "-o", "/dev/null", "true"]) else { return };
    match report.status().code() {
        Some(127) => println!("skipped: there is no strace"),
        _ => assert!(report.has_note("cannot be traced twice"), "{report:?}"),
    }
    let Some(report) = run_traced(&["ptrace"], &["true"]) else { return };
    assert!(!report.has_note("cannot be traced twice") && !report.has_note("set-user-ID"), "{report:?}");
}

#[test]
fn a_program_without_its_owners_rights_is_noted() {
    // SAFETY: geteuid(2) has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: only root has programs of another user");
    }
    let Some((mut command, directory)) = tracing(&["ptrace"], &[]) else { return };
    let open = fs::Permissions::from_mode;
    fs::set_permissions(directory.path(), open(0o777)).expect("our directory");
    let program = directory.path().join("true");
    fs::copy("/bin/true", &program).expect("a copy");
    fs::set_permissions(&program, open(0o4755)).expect("our file");
    let trace = directory.path().join("trace");
    fs::copy(command.get_program(), &trace).expect("a copy");
    command = Command::new(&trace);
    command
        .arg("ptrace")
        .arg(format!("out={}", directory.path().join("out").display()))
        .arg("--")
        .arg(&program);
    let output = match command.uid(65534).gid(65534).output() {
        Ok(output) if output.status.code() != Some(2) => output,
        refused => return println!("skipped: that user may not do this here: {refused:?}"),
    };
    assert!(output.status.success(), "{output:?}");
    let report = Report::read(&directory.path().join("out"));
    let file_system = rustix::fs::statvfs(&program).expect("a file system");
    let expected = !file_system.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID);
    assert_eq!(report.has_note("is set-user-ID"), expected, "{report:?}");
}

#[test]
fn where_no_file_may_grow_the_commands_status_is_passed_on() {
    for backend in BACKENDS {
        let Some((command, directory)) = tracing(&[backend], &[]) else { return };
        let out = format!("out={}", directory.path().join("out").display());
        let mut limited = Command::new("sh");
        limited.args(["-c", r#"ulimit -f 0; exec "$@""#, "sh"]).arg(command.get_program());
        limited.args([backend, &out, "--", "sh", "-c", "ulimit -f; exit 3"]);
        let output = limited.output().expect("it starts");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"0\n"[..]), "{output:?}");
        // The command itself has the usual action.
        limited = Command::new("sh");
        limited.args(["-c", r#"ulimit -f 0; exec "$@""#, "sh"]).arg(command.get_program());
        limited.args([backend, &out, "--", "sh", "-c"]);
        limited
            .arg(format!("exec dd if=/dev/zero of='{}' count=1", directory.path().join("grown").display()));
        let output = limited.output().expect("it starts");
        assert_eq!(output.status.signal(), Some(libc::SIGXFSZ), "{output:?}");
    }
}
