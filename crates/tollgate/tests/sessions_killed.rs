//! Sessions that end in any way leave no process, mount, cgroup, directory or changed setting.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::{Home, is_root, program, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tollgate_os::signals::{self, Disposition};

/// A variable that all processes of a session inherit, with a value of this test's own.
const MARK: &str = "TOLLGATE_TEST_SESSION";
/// A setting that nothing depends on: how many messages may come at once before printk is rate-limited.
const KNOB: &str = "/proc/sys/kernel/printk_ratelimit_burst";

const OF_CALLS: [&str; 2] = ["entry/call", "entry/syscall"];

/// Files that one session leaves must not be taken for another's.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session in its own directories.
struct Session {
    home: Home,
    mark: String,
    child: Child,
}

impl Session {
    fn begin(number: usize, words: &[&str]) -> Self {
        Self::start(&OF_CALLS, number, words)
    }

    fn start(benchmarks: &[&str], number: usize, words: &[&str]) -> Self {
        Self::heard(benchmarks, number, &[words, &["--quiet"]].concat(), Stdio::null())
    }

    /// A session whose messages are read.
    fn heard(benchmarks: &[&str], number: usize, words: &[&str], stderr: Stdio) -> Self {
        let home = Home::new();
        let temporary = home.path().join("tmp");
        fs::create_dir(&temporary).expect("made");
        let mark = format!("{}-{number}", std::process::id());
        let mut command = Command::new(program());
        command.arg("run").args(benchmarks).args(["--time", "600"]).args(words);
        command
            .env("XDG_DATA_HOME", home.path())
            .env("TMPDIR", &temporary)
            .env(MARK, &mark)
            .current_dir(home.path());
        // A shell lets background processes ignore SIGINT.
        signals::start_with(&mut command, Disposition::default_with(0), &[libc::SIGINT]);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr).spawn().expect("started");
        Self { home, mark, child }
    }

    /// Its processes, by the variable that they inherit.
    fn processes(&self) -> Vec<i32> {
        let marked = format!("{MARK}={}", self.mark);
        let processes = fs::read_dir("/proc")
            .expect("/proc")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        processes
            .filter(|pid: &i32| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == marked.as_bytes())
            })
            .collect()
    }

    fn command_line(pid: i32) -> String {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    }

    fn wait_for_agents(&mut self, number: usize) {
        wait_for("the agents", || {
            assert!(self.child.try_wait().expect("our own child").is_none(), "it ended before");
            let agents =
                self.processes().into_iter().filter(|pid| Self::command_line(*pid).contains(" agent"));
            (agents.count() >= number).then_some(())
        });
    }

    /// The control groups of its containers, whose names have the command's process ID.
    fn cgroups(&self) -> Vec<PathBuf> {
        let own = format!("tollgate-{}-", self.child.id());
        let is_own =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(&own));
        cgroups().into_iter().filter(is_own).collect()
    }

    /// Waits for the end, and checks that nothing is left; returns the signal that ended the command.
    fn expect_nothing(mut self, what: &str) -> Option<i32> {
        let status = self.child.wait().expect("waited");
        wait_for(&format!("{what}: the end of its processes"), || self.processes().is_empty().then_some(()));
        let beneath = self.home.path().join("tmp");
        wait_for(&format!("{what}: an empty directory for temporary files"), || {
            common::entries(&beneath).is_empty().then_some(())
        });
        wait_for(&format!("{what}: the end of its control groups"), || {
            self.cgroups().is_empty().then_some(())
        });
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let own = self.home.path().display().to_string();
        assert!(!mounts.contains(&own), "{what}: a mount is left");
        let others: Vec<PathBuf> = common::entries(self.home.path())
            .into_iter()
            .filter(|path| !path.ends_with("tmp") && !path.ends_with("tollgate"))
            .collect();
        assert!(others.is_empty(), "{what}: {others:?}");
        status.signal()
    }
}

fn cgroups() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = directories.pop() {
        let inner = fs::read_dir(&directory).into_iter().flatten().flatten();
        let inner = inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.extend(inner.map(|entry| entry.path()));
        found.push(directory);
    }
    found
}

fn working() -> Vec<String> {
    let known = Home::new().json(["environments", "--format=json"]);
    let all = known["environments"].as_array().expect("environments").iter();
    let works = all.filter(|one| one["works"] == true).filter_map(|one| one["environment"].as_str());
    works
        .filter(|name| ["host", "gvisor", "vm"].contains(name) || name.starts_with("container"))
        .map(str::to_owned)
        .collect()
}

/// Kills sessions of these benchmarks in `names`, one process of each at a time, and checks for leftovers. The number of a
/// session determines when and how.
fn kill(benchmarks: &[&str], numbers: std::ops::Range<usize>, names: &[String]) {
    let _alone = alone();
    for at in numbers {
        let name = &names[at % names.len()];
        let mut session = Session::start(benchmarks, at, &["--in", "host", "--in", name]);
        if at % 3 != 0 {
            session.wait_for_agents(1);
        }
        // At any moment of the session.
        std::thread::sleep(Duration::from_millis(at as u64 * 37 % 900));
        let signal = [Signal::KILL, Signal::TERM, Signal::INT][at / 2 % 3];
        let processes = session.processes();
        let main = i32::try_from(session.child.id()).expect("a number");
        let others: Vec<i32> = processes.iter().copied().filter(|pid| *pid != main).collect();
        // The command itself, or another process of the session and then the command.
        let victim = match at % 2 {
            0 => main,
            _ => others.get(at * 7 % others.len().max(1)).copied().unwrap_or(main),
        };
        let what = format!("{at}: {name}, {signal:?} to {}", Session::command_line(victim));
        // It may have ended already.
        let send = |pid: i32, signal| {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, signal);
            }
        };
        send(victim, signal);
        if victim != main {
            std::thread::sleep(Duration::from_millis(100));
            // The other may have been the cleanup process: if both are killed, nothing can clean up.
            send(main, Signal::TERM);
        }
        session.expect_nothing(&what);
    }
}

#[test]
fn killed_sessions_leave_nothing() {
    kill(&OF_CALLS, 0..8, &working());
}

#[test]
fn killed_while_environments_start_and_stop_they_leave_nothing() {
    kill(&["environments"], 0..4, &working());
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn many_sessions_killed_while_environments_start_and_stop_leave_nothing() {
    kill(&["environments"], 4..10, &working());
}

#[test]
#[ignore = "slow: .ci/run runs it"]
fn many_killed_sessions_leave_nothing() {
    kill(&OF_CALLS, 8..24, &working());
}

#[test]
fn interrupted_it_keeps_the_session_until_then() {
    let _alone = alone();
    // More cases than can be decided before the interrupt: a session of two would end by itself.
    let benchmarks = ["entry", "traps", "memory"];
    let mut session = Session::heard(&benchmarks, 1000, &["--in", "host", "--in", "host"], Stdio::piped());
    common::until_decided(&mut session.child);
    kill_process(Pid::from_child(&session.child), Signal::INT).expect("our own child");
    let runs = session.home.runs();
    wait_for("the end", || session.child.try_wait().expect("our own child"));
    assert_eq!(common::entries(&runs).len(), 2, "a run of each environment is kept");
    assert_eq!(session.expect_nothing("interrupted"), Some(libc::SIGINT));
}

fn knob() -> String {
    fs::read_to_string(KNOB).unwrap_or_default().trim().to_owned()
}

#[test]
fn a_second_session_does_not_take_the_value_of_the_first_for_the_original() {
    if !is_root() {
        return println!("skipped: needs root (a setting of the machine)");
    }
    let _alone = alone();
    let was = knob();
    let [first, second] = [1, 2].map(|more| (was.parse::<u32>().expect("a number") + more).to_string());
    for number in 0..3 {
        let session = Session::begin(2100 + number, &["--knob", &format!("{KNOB}={first}")]);
        wait_for("the other value", || (knob() == first).then_some(()));
        // The setting now has the other value, for as long as the second session tries to begin.
        let pid = Pid::from_child(&session.child);
        kill_process(pid, Signal::STOP).expect("our own child");
        let alias = format!("/proc/sys/kernel/../kernel/printk_ratelimit_burst={second}");
        let words = ["run", "entry/call", "--time", "2", "--knob", &alias];
        let refused = Home::new().tollgate(words).output().expect("the program starts");
        kill_process(pid, Signal::KILL).expect("our own child");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("process {} (", pid.as_raw_nonzero())), "{said}");
        assert_eq!(session.expect_nothing("only one session"), Some(Signal::KILL.as_raw()));
        wait_for("the value before", || (knob() == was).then_some(()));
    }
}

#[test]
fn a_setting_is_put_back_however_the_run_ends() {
    if !is_root() {
        return println!("skipped: needs root (a setting of the machine)");
    }
    let _alone = alone();
    let was = knob();
    let other = was.parse::<u32>().expect("a number") + 1;
    let setting = format!("{KNOB}={other}");
    for (number, signal) in [Signal::KILL, Signal::TERM, Signal::INT].into_iter().enumerate() {
        let session = Session::begin(2000 + number, &["--knob", &setting]);
        wait_for("the other value", || (knob() == other.to_string()).then_some(()));
        kill_process(Pid::from_child(&session.child), signal).expect("our own child");
        assert_eq!(session.expect_nothing("a knob"), Some(signal.as_raw()));
        wait_for("the value before", || (knob() == was).then_some(()));
    }
    // A whole run, in two environments that differ only by the setting.
    let home = Home::new();
    let words =
        ["run", "entry/call", "entry/syscall", "--processes", "6", "--knob", &setting, "--format=json"];
    let output = home.tollgate(words).output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(knob(), was);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(KNOB) && said.contains(&other.to_string()), "said before it is done: {said}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let parts: Vec<_> =
        shown["runs"].as_array().expect("runs").iter().map(|run| run["session"].clone()).collect();
    assert!(parts[0]["knob"].is_null(), "{parts:?}");
    assert_eq!(
        (
            parts[1]["knob"]["path"].as_str(),
            parts[1]["knob"]["was"].as_str(),
            parts[1]["knob"]["value"].as_str()
        ),
        (Some(KNOB), Some(was.as_str()), Some(other.to_string().as_str()))
    );
}

/// A file exists while a state is on.
#[test]
fn a_state_is_switched_off_however_the_run_ends() {
    let home = Home::new();
    let state = home.path().join("state");
    let [on, off] = ["touch", "rm -f"].map(|command| format!("{command} '{}'", state.display()));
    let words = ["--switch", &on, &off, "state"];
    for (number, signal) in [Signal::KILL, Signal::TERM, Signal::INT].into_iter().enumerate() {
        let session = Session::begin(2200 + number, &words);
        wait_for("the state", || state.exists().then_some(()));
        kill_process(Pid::from_child(&session.child), signal).expect("our own child");
        assert_eq!(session.expect_nothing("a switch"), Some(signal.as_raw()));
        wait_for("its end", || (!state.exists()).then_some(()));
    }
    // An ON that does not end is ended.
    let on = format!("{on}; sleep 600");
    let words = ["--switch", &on, &off, "state"];
    let mut session = Session::heard(&OF_CALLS, 2210, &words, Stdio::piped());
    wait_for("the state", || state.exists().then_some(()));
    kill_process(Pid::from_child(&session.child), Signal::TERM).expect("our own child");
    let said = std::io::read_to_string(session.child.stderr.take().expect("a pipe")).expect("text");
    assert!(said.contains("interrupted") && !said.contains("did not end"), "{said}");
    assert_eq!(session.expect_nothing("an ON without end"), Some(libc::SIGTERM));
    assert!(!state.exists());
    // A whole run, with two states.
    let log = home.path().join("log");
    let [first, second, all_off] =
        ["first", "second", "off"].map(|word| format!("echo {word} >> '{}'", log.display()));
    let mut words = vec!["run", "entry/call", "--processes", "2", "--format=json"];
    words.extend(["--switch", &first, &all_off, "first", "--switch", &second, &all_off, "second"]);
    let output = home.tollgate(words).output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let names = |run: &serde_json::Value| {
        let switches = run["session"]["switches"].as_array().cloned().unwrap_or_default();
        switches.iter().map(|switch| switch["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let states: Vec<Vec<String>> = shown["runs"].as_array().expect("runs").iter().map(names).collect();
    assert_eq!(states, [vec![], vec!["first"], vec!["second"], vec!["first", "second"]]);
    let log = fs::read_to_string(log).expect("a log");
    let lines = |word: &str| log.lines().filter(|line| *line == word).count();
    assert!(lines("first") > 2 && lines("second") > 2, "{log}");
    // A state that cannot be switched off at the end is named after the figures.
    let worn = home.path().join("worn");
    let off = format!("echo >> '{0}'; [ $(wc -l < '{0}') -lt 3 ]", worn.display());
    let words = ["run", "entry/call", "--processes", "1", "--switch", "true", &off, "worn"];
    let output = home.tollgate(words).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("to switch it off"), "{said}");
    // Each is switched off at the end, in any state.
    let on = lines("first") + lines("second");
    assert!((on..=on + 2).contains(&lines("off")), "{log}");
}
