//! Commands that hang, read missing input, leave daemons, kill their group or print without end: each ends, is reported, and
//! leaves nothing; in this process and in an agent.

mod common;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::marked::bearing;
use common::{Home, program, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tollgate_os::seccomp::{self, Answers, Rules};

const PLACES: [&[&str]; 2] = [&[], &["--in", "host"]];

/// Commands are heavy work, and have time limits.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Versus {
    home: Home,
    mark: String,
    _alone: MutexGuard<'static, ()>,
}

impl Versus {
    fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mark = format!("TOLLGATE_VERSUS_MARK={}-{number}", std::process::id());
        Self { home: Home::new(), mark, _alone: alone() }
    }

    /// Starts the program. Its standard input is a pipe that stays open and empty.
    fn started(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("started")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        let (name, value) = self.mark.split_once('=').expect("a name and a value");
        command.arg("versus").args(arguments).env("XDG_DATA_HOME", self.home.path()).env(name, value);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(self.home.path());
        command
    }

    fn ended(&self, mut child: Child) -> Output {
        let input = child.stdin.take();
        let output = child.wait_with_output().expect("waited");
        drop(input);
        self.expect_nothing_alive();
        output
    }

    fn expect_nothing_alive(&self) {
        wait_for("the end of all processes", || bearing(&self.mark).is_empty().then_some(()));
    }

    /// The output of commands executed in each of the places.
    fn outcomes(&self, arguments: &[&str]) -> Vec<(Output, String)> {
        let outcome = |place: &&[&str]| {
            let began = Instant::now();
            let output = self.ended(self.started(&[place, arguments].concat()));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.signal(), None, "{arguments:?}: {said}");
            assert!(began.elapsed() < Duration::from_secs(300), "{arguments:?}");
            (output, said)
        };
        PLACES.iter().map(outcome).collect()
    }

    fn succeeds(&self, arguments: &[&str]) {
        for (output, said) in self.outcomes(arguments) {
            assert!(output.status.success(), "{arguments:?}: {said}");
        }
    }

    /// Checks that the output has all of these.
    fn fails(&self, arguments: &[&str], why: &[&str]) {
        for (output, said) in self.outcomes(arguments) {
            assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {:?}", output.status);
            assert!(why.iter().all(|why| said.contains(why)), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_command_that_hangs_is_ended_and_said() {
    let versus = Versus::new();
    versus.fails(&["--timeout", "0.3s", "-r", "2", "true", "sleep 600"], &["sleep 600", "--timeout"]);
    versus.fails(
        &["--timeout", "300ms", "-r", "2", "trap '' TERM INT; while :; do sleep 600; done"],
        &["--timeout"],
    );
    versus.fails(&["--timeout", "0.3s", "-r", "2", "kill -STOP $$"], &["--timeout"]);
}

#[test]
fn a_command_that_reads_gets_nothing_and_its_failure_is_shown() {
    let versus = Versus::new();
    versus.succeeds(&["-r", "2", "cat", "read line || true"]);
    versus.fails(&["-r", "2", "true", "echo the reason >&2; exit 3"], &["exit 3", "status 3", "the reason"]);
    versus.fails(&["-r", "2", "-N", "no-such-program"], &["no-such-program"]);
    versus.succeeds(&["-r", "2", "-i", "exit 3", "kill -SEGV $$"]);
}

#[test]
fn what_a_command_leaves_is_ended() {
    let versus = Versus::new();
    versus.succeeds(&["-r", "2", "sleep 600 &", "setsid sh -c 'trap \"\" HUP TERM; sleep 600' &"]);
    // A server that a preparation starts lives until the end.
    let setup = "sleep 600 & echo $! > server";
    versus.succeeds(&[
        "-r",
        "2",
        "--setup",
        setup,
        "--cleanup",
        "kill $(cat server)",
        "kill -0 $(cat server)",
    ]);
    versus.succeeds(&["-r", "2", "--setup", setup, "kill -0 $(cat server)"]);
}

#[test]
fn a_command_that_ends_its_group_does_not_end_the_program() {
    let versus = Versus::new();
    for signal in ["TERM", "KILL", "INT"] {
        let line = format!("kill -{signal} 0; sleep 600");
        versus.fails(&["-r", "2", &line], &["kill", &format!("SIG{signal}")]);
        versus.succeeds(&["-r", "2", "-i", "true", &line]);
    }
    versus.fails(&["-r", "2", "kill -KILL $PPID; sleep 600"], &["SIGKILL"]);
}

#[test]
fn a_command_that_prints_a_gigabyte_is_not_held_up() {
    let versus = Versus::new();
    let much = "head -c 1000000000 /dev/zero";
    versus.succeeds(&["-r", "1", "-w", "0", "--no-trace", much, &format!("{much} >&2")]);
    versus.succeeds(&["-r", "1", "-w", "0", "--no-trace", "--output", "pipe", much]);
    // Only the end of it is shown.
    let fails = "head -c 100000000 /dev/zero >&2; echo the end >&2; exit 1";
    for (output, said) in versus.outcomes(&["-r", "1", fails]) {
        assert!(
            !output.status.success() && said.contains("the end") && said.len() < 100_000,
            "{}",
            said.len()
        );
    }
}

#[test]
fn interrupted_it_ends_the_command_and_cleans_up() {
    let versus = Versus::new();
    for place in PLACES {
        for (line, signal) in [
            ("sleep 600", Signal::INT),
            ("setsid sleep 600 & echo > running; wait", Signal::TERM),
            ("true", Signal::INT),
        ] {
            let (running, cleaned) = (versus.home.path().join("running"), versus.home.path().join("cleaned"));
            let _ = (std::fs::remove_file(&running), std::fs::remove_file(&cleaned));
            let around =
                ["--prepare", "echo > running", "--cleanup", "echo > cleaned", "--time", "600", line];
            let child = versus.started(&[place, &around].concat());
            wait_for("the command", || running.exists().then_some(()));
            std::thread::sleep(Duration::from_millis(400));
            kill_process(Pid::from_child(&child), signal).expect("our own child");
            let output = versus.ended(child);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.signal(), Some(signal.as_raw()), "{place:?} {line}: {said}");
            assert!(cleaned.exists(), "{place:?} {line}: {said}");
        }
    }
}

#[test]
fn killed_it_leaves_no_process() {
    let versus = Versus::new();
    for place in PLACES {
        let running = versus.home.path().join("running");
        let _ = std::fs::remove_file(&running);
        let line = "echo > running; sleep 600 & sleep 600";
        let child = versus.started(&[place, &["--time", "600", line]].concat());
        wait_for("the command", || running.exists().then_some(()));
        kill_process(Pid::from_child(&child), Signal::KILL).expect("our own child");
        assert_eq!(versus.ended(child).status.signal(), Some(libc::SIGKILL));
    }
}

/// A filter around this program may refuse kill(2). The guard of an execution then stays until the agent ends, and no execution
/// waits for it.
#[test]
fn what_may_not_be_killed_is_not_waited_for() {
    let versus = Versus::new();
    let all = Answers::all(libc::SECCOMP_RET_ALLOW);
    let mut rules = Rules { long: all.clone(), short: all };
    let kill = tollgate_os::calls::number("kill").expect("a call");
    rules.add(kill, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs());
    let filter = rules.filter().expect("a short one");
    let mut command =
        versus.command(&["-N", "--no-trace", "--runs", "6", "--in", "host", "true", "/bin/true"]);
    // SAFETY: system calls on memory that was made before.
    unsafe { command.pre_exec(move || seccomp::install(&filter)) };
    let mut child = command.spawn().expect("started");
    wait_for("six executions", || child.try_wait().expect("our own child"));
    let output = versus.ended(child);
    assert!(output.status.success(), "{output:?}");
}
