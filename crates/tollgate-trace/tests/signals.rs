//! A traced command gets signals and stops, and has children, as if it ran alone; no other child is affected.

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Report, eventually, puppet, send, state, trace_puppet, tracing};

/// By ptrace stops, and by BPF programs if they may be loaded.
const BACKENDS: [&str; 2] = ["ptrace", "best"];

/// A traced program that counts signals.
struct Counting {
    command: Command,
    _directories: [tempfile::TempDir; 2],
    counts: PathBuf,
}

impl Counting {
    fn by(backend: &str) -> Option<Self> {
        let puppet = puppet()?;
        let (_, benchmark) = tracing(&[backend], &[])?;
        let counts = benchmark.path().join("counts");
        let words =
            [puppet.to_str().expect("a path of letters"), "count", counts.to_str().expect("as above")];
        let (mut command, directory) = tracing(&[backend], &words)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Some(Self { command, _directories: [benchmark, directory], counts })
    }

    fn ready(&self) -> PathBuf {
        self.counts.with_extension("ready")
    }

    fn await_ready(&self) {
        eventually("the program's start", || {
            fs::read_to_string(self.ready()).is_ok_and(|pid| !pid.is_empty())
        });
    }

    fn counted(&self) -> String {
        fs::read_to_string(&self.counts).expect("what it counted")
    }
}

fn number(child: &Child) -> libc::pid_t {
    libc::pid_t::try_from(child.id()).expect("a number")
}

#[test]
fn a_keyboards_signal_to_the_group_comes_once() {
    for backend in BACKENDS {
        for (signal, word) in [(libc::SIGINT, "INT=1"), (libc::SIGQUIT, "QUIT=1")] {
            let Some(mut counting) = Counting::by(backend) else { return };
            let mut child = counting.command.process_group(0).spawn().expect("it starts");
            counting.await_ready();
            send(-number(&child), signal);
            assert!(child.wait().expect("it ends").success());
            assert_eq!(counting.counted(), word, "{backend}");
        }
    }
}

#[test]
fn a_signal_to_the_tracer_alone_comes_once() {
    for backend in BACKENDS {
        for (signal, word) in [(libc::SIGTERM, "TERM=1"), (libc::SIGUSR2, "USR2=1")] {
            let Some(mut counting) = Counting::by(backend) else { return };
            let mut child = counting.command.process_group(0).spawn().expect("it starts");
            counting.await_ready();
            send(number(&child), signal);
            assert!(child.wait().expect("it ends").success());
            assert_eq!(counting.counted(), word, "{backend}");
        }
    }
}

/// Opens a pseudo-terminal: our end, and the other one.
fn terminal() -> Option<(File, OwnedFd)> {
    let (mut ours, mut theirs) = (-1, -1);
    let nothing = std::ptr::null_mut::<libc::c_char>();
    // SAFETY: there is room for two descriptors, and the other arguments may be null.
    let made = unsafe {
        libc::openpty(&raw mut ours, &raw mut theirs, nothing, std::ptr::null_mut(), std::ptr::null_mut())
    };
    if made != 0 {
        println!("skipped: there are no pseudo-terminals: {}", std::io::Error::last_os_error());
        return None;
    }
    // SAFETY: both descriptors are new and have no other owner.
    Some(unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) })
}

/// Makes a command the leader of a session with this controlling terminal.
fn on_terminal(command: &mut Command, theirs: &OwnedFd) {
    let theirs = theirs.as_raw_fd();
    // SAFETY: system calls on an open descriptor.
    unsafe {
        command.pre_exec(move || {
            rustix::process::setsid()?;
            match libc::ioctl(theirs, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        })
    };
}

#[test]
fn ctrl_c_in_a_terminal_comes_once() {
    for backend in BACKENDS {
        for (key, word) in [(3_u8, "INT=1"), (28, "QUIT=1")] {
            let Some(mut counting) = Counting::by(backend) else { return };
            let Some((mut ours, theirs)) = terminal() else { return };
            on_terminal(&mut counting.command, &theirs);
            let mut child = counting.command.spawn().expect("it starts");
            counting.await_ready();
            ours.write_all(&[key]).expect("the terminal's keyboard");
            assert!(child.wait().expect("it ends").success());
            assert_eq!(counting.counted(), word, "{backend}");
        }
    }
}

fn script(backend: &str, script: &str) -> Option<(Command, tempfile::TempDir)> {
    let (mut command, directory) = tracing(&[backend], &["sh", "-c", script])?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Some((command, directory))
}

#[test]
fn a_command_may_signal_its_own_group() {
    for backend in BACKENDS {
        let Some((mut command, _out)) = script(backend, "trap : TERM; kill -TERM 0; exit 7") else { return };
        assert_eq!(command.process_group(0).status().expect("it starts").code(), Some(7), "{backend}");
    }
}

#[test]
fn a_stop_of_the_terminal_stops_both_once() {
    for backend in BACKENDS {
        let directory = tempfile::tempdir().expect("a directory");
        let ready = directory.path().join("ready");
        let text =
            format!(": > '{0}'; while [ ! -e '{0}.end' ]; do sleep 0.02; done; exit 9", ready.display());
        let Some((mut command, _out)) = script(backend, &text) else { return };
        let mut child = command.process_group(0).spawn().expect("it starts");
        eventually("its start", || ready.exists());
        for _ in 0..3 {
            send(-number(&child), libc::SIGTSTP);
            eventually("the tracer's stop", || state(number(&child)) == 'T');
            send(-number(&child), libc::SIGCONT);
            eventually("its going on", || state(number(&child)) != 'T');
            std::thread::sleep(std::time::Duration::from_millis(200));
            assert_ne!(state(number(&child)), 'T', "{backend}: it stopped a second time");
        }
        fs::write(ready.with_extension("end"), "").expect("a file");
        assert_eq!(child.wait().expect("it ends").code(), Some(9), "{backend}");
    }
}

#[test]
fn children_that_were_there_before_are_left_alone() {
    for backend in BACKENDS {
        // One child that stays, and one that ends meanwhile and becomes a zombie; the command leaves orphans.
        let command = "(sleep 0.1 &); (sleep 0.3 &); sh -c 'exit 0'; sleep 0.2; exit 3";
        let Some((trace, directory)) = tracing(&[backend], &["sh", "-c", command]) else { return };
        for before in ["sleep 300 & echo $! > PID", "sleep 300 & echo $! > PID; sleep 0.05 & true"] {
            let pid = directory.path().join("pid");
            let script = format!("{}; exec \"$@\"", before.replace("PID", &format!("'{}'", pid.display())));
            let mut shell = Command::new("bash");
            shell.args(["-c", &script, "bash"]).arg(trace.get_program()).args(trace.get_args());
            let status = shell.stdout(Stdio::null()).status().expect("it starts");
            let pid: libc::pid_t =
                fs::read_to_string(&pid).expect("its number").trim().parse().expect("a number");
            let lives = state(pid);
            send(pid, libc::SIGKILL);
            assert_eq!(status.code(), Some(3), "{backend}");
            assert!(matches!(lives, 'S' | 'R' | 'D'), "{backend}: {lives}");
            let report = Report::read(&directory.path().join("out"));
            assert!(!report.has_note("still running"), "{report:?}");
            // At least the shell, three subshells, and three sleeps.
            assert!(report.head["backend"] == "Rusage" || report.number("processes") >= 5, "{report:?}");
        }
    }
}

#[test]
fn children_are_left_alone_where_proc_has_other_numbers() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: needs root (a PID namespace)");
    }
    for backend in BACKENDS {
        let Some((trace, directory)) = tracing(&[backend], &["sh", "-c", "(sleep 0.2 &); exit 3"]) else {
            return;
        };
        let said = directory.path().join("said");
        // The end of the namespace's first process would kill all others, so it waits until the second one has looked.
        let script = format!(
            "bash -c 'sleep 300 & echo $! > {0}; exec \"$@\"' bash \"$@\"; echo \"status $?\" > {0}.status; \
             kill -0 $(cat {0}) && echo lives >> {0}.status; exit 0",
            said.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "bash", "-c", &script, "bash"]);
        command.arg(trace.get_program()).args(trace.get_args());
        match command.stdout(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            refused => return println!("skipped: no PID namespace can be made: {refused:?}"),
        }
        let said = fs::read_to_string(said.with_extension("status")).expect("what it said");
        assert_eq!(said, "status 3\nlives\n", "{backend}");
    }
}

#[test]
fn a_filter_of_the_commands_own_says_what_it_says_alone() {
    for only in ["only=getppid", "only=write", "only=getppid,write"] {
        let Some(report) = trace_puppet(&["ptrace", only], &["own-filter"]) else { return };
        let output = report.output.as_ref().expect("it ran");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0 -1 true\n", "{only}: {report:?}");
        if report.head["backend"] == "Ptrace" {
            assert!(report.has_note("the command made a filter of its own"), "{only}: {report:?}");
            assert_eq!(report.call("seccomp", "count") + report.call("prctl", "count"), 0, "not asked for");
        }
        if report.head["backend"] == "Ptrace" && only.contains("getppid") {
            assert_eq!(
                (report.call("getppid", "count"), report.call("getppid", "errors")),
                (1, 1),
                "{report:?}"
            );
        }
    }
    let Some(report) = trace_puppet(&["ptrace", "only=getppid"], &["calls", "3"]) else { return };
    assert!(!report.has_note("a filter of its own"), "it made none: {report:?}");
}

#[test]
fn a_stream_that_is_closed_stays_closed() {
    for backend in BACKENDS {
        for stream in ["<&-", "2>&-"] {
            let look = "for i in 0 1 2; do [ -e /proc/$$/fd/$i ] && printf $i; done";
            let Some((trace, _place)) = tracing(&[backend], &["sh", "-c", look]) else { return };
            let words = |command: &Command| -> Vec<PathBuf> {
                std::iter::once(command.get_program()).chain(command.get_args()).map(PathBuf::from).collect()
            };
            let run = |words: &[PathBuf]| {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("exec \"$@\" {stream}"), "sh"]).args(words);
                shell.output().expect("it starts").stdout
            };
            let alone = run(&["sh", "-c", look].map(|word| Path::new(word).to_owned()));
            let traced = run(&words(&trace));
            assert_eq!(
                String::from_utf8_lossy(&traced),
                String::from_utf8_lossy(&alone),
                "{backend} {stream}"
            );
            assert!(!alone.is_empty());
        }
    }
}

#[test]
fn a_signal_that_comes_when_the_command_has_ended_ends_the_tracer() {
    for backend in BACKENDS {
        let directory = tempfile::tempdir().expect("a directory");
        let done = directory.path().join("done");
        let text =
            format!("(sleep 300) & echo $! $$ > '{0}.new'; mv '{0}.new' '{0}'; exit 0", done.display());
        let Some((mut trace, _out)) = tracing(&[backend, "linger=600"], &["sh", "-c", &text]) else { return };
        let mut child = trace.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts");
        eventually("the command's start", || done.exists());
        let numbers = fs::read_to_string(&done).expect("its numbers");
        let numbers: Vec<libc::pid_t> =
            numbers.split_whitespace().map(|pid| pid.parse().expect("a number")).collect();
        // Its descendants are waited for.
        eventually("the command's end", || state(numbers[1]) == '-');
        std::thread::sleep(std::time::Duration::from_millis(300));
        send(number(&child), libc::SIGTERM);
        assert_eq!(child.wait().expect("it ends").signal(), Some(libc::SIGTERM), "{backend}");
        send(numbers[0], libc::SIGKILL);
    }
}
