//! Kills processes of a session at random moments, and checks that nothing is left.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::geteuid;
use tollgate_os::process;
use tollgate_os::signals::{self, Disposition};

use crate::leftovers::{Groups, Process, Watched};
use crate::program::{KNOB, MARK, own};

/// A setting without effect on other programs.
const SETTING: &str = "/proc/sys/kernel/panic_on_oops";

/// The process that gets the signal.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Victim {
    Command,
    Agent,
    Cleanup,
    /// Any process that the command started, including a container's runtime.
    Any,
}

const KILLS: [(Victim, i32); 8] = [
    (Victim::Command, libc::SIGKILL),
    (Victim::Command, libc::SIGTERM),
    (Victim::Agent, libc::SIGKILL),
    (Victim::Command, libc::SIGKILL),
    (Victim::Cleanup, libc::SIGKILL),
    (Victim::Command, libc::SIGINT),
    (Victim::Any, libc::SIGKILL),
    (Victim::Cleanup, libc::SIGTERM),
];

/// Numbers that differ from run to run (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }
}

fn setting() -> String {
    std::fs::read_to_string(SETTING).unwrap().trim().to_owned()
}

fn command(watched: &Watched, specs: &[&str], has_knob: bool) -> Command {
    let mut command = Command::new(own());
    command.arg("command").args(specs).env(MARK, &watched.mark).env("TMPDIR", watched.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A shell makes its background jobs ignore SIGINT.
    signals::start_with(&mut command, Disposition::default_with(0), &[libc::SIGINT]);
    if has_knob {
        command.env(KNOB, format!("{SETTING}={}", if setting() == "0" { 1 } else { 0 }));
    }
    command
}

/// The environments that work here, and how long they take to begin.
fn working(all: &[&'static str]) -> (Vec<&'static str>, Duration) {
    let mut works = Vec::new();
    let mut took = Duration::from_millis(50);
    for spec in all {
        let watched = Watched::new();
        let began = Instant::now();
        let mut child = command(&watched, &[spec], false).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.map(Result::unwrap) {
            if line == "ready 1" {
                works.push(*spec);
                took += began.elapsed();
            } else if !line.starts_with("ready") {
                println!("skipped: {line}");
            }
            if line.starts_with("ready") {
                break;
            }
        }
        process::kill(child.id().cast_signed(), libc::SIGTERM).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(watched.left(&Groups { command: Some(child.id()) }), [""; 0], "{spec}");
    }
    (works, took)
}

fn victim(victim: Victim, command: i32, processes: &[Process], random: &mut Random) -> Option<i32> {
    let is = |process: &&Process| match victim {
        Victim::Command => process.pid == command,
        Victim::Cleanup => process.name == tollgate_environments::NAME,
        Victim::Agent => process.words.contains(" agent") && process.pid != command,
        Victim::Any => process.pid != command && process.name != tollgate_environments::NAME,
    };
    let all: Vec<&Process> = processes.iter().filter(is).collect();
    all.get(usize::try_from(random.below(all.len() as u64)).unwrap()).map(|process| process.pid)
}

fn kill(number: usize, specs: &[&str], most: Duration, random: &mut Random) -> Vec<String> {
    let (whom, signal) = KILLS[number % KILLS.len()];
    let watched = Watched::new();
    let was = setting();
    let has_knob = geteuid().is_root() && number.is_multiple_of(2);
    let mut child = command(&watched, specs, has_knob).stdout(Stdio::null()).spawn().unwrap();
    let pid = child.id().cast_signed();
    std::thread::sleep(Duration::from_micros(random.below(most.as_micros().try_into().unwrap())));
    let processes = watched.processes();
    let hit = if whom == Victim::Command { Some(pid) } else { victim(whom, pid, &processes, random) };
    if let Some(hit) = hit {
        // It may have ended by itself by now.
        let _ = process::kill(hit, signal);
    }
    if whom != Victim::Command {
        std::thread::sleep(Duration::from_millis(random.below(60)));
        let _ = process::kill(pid, libc::SIGTERM);
    }
    child.wait().unwrap();
    let mut left = watched.left(&Groups { command: Some(child.id()) });
    if setting() != was {
        left.push(format!("{SETTING} is {}, and was {was}", setting()));
        std::fs::write(SETTING, &was).unwrap();
    }
    if !left.is_empty() {
        left.insert(0, format!("kill {number}: {whom:?} by {signal}, {hit:?} of {processes:#?}"));
    }
    left
}

fn kills(number: usize) {
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let mut random = Random(u64::try_from(seed & u128::from(u64::MAX)).unwrap());
    println!("seed {}", random.0);
    let upload = "exec:sh -c 'case \"$1\" in sh) exec \"$@\";; esac; exit 127' x";
    let all = [
        "host:env.TOLLGATE_TEST_X=1",
        "exec:nice -n 1",
        upload,
        "container:runtime=bwrap",
        "container:runtime=runc",
        "gvisor",
    ];
    let (specs, took) = working(&all);
    println!("{} of {} environments, {took:?} to begin", specs.len(), all.len());
    let mut left = 0;
    for number in 0..number {
        // All together, and each alone.
        let some = number % (specs.len() + 1);
        let chosen = if some == 0 { &specs[..] } else { &specs[some - 1..some] };
        let most = if some == 0 { took * 2 } else { took };
        let found = kill(number, chosen, most, &mut random);
        left += usize::from(!found.is_empty());
        found.iter().for_each(|line| println!("{line}"));
    }
    println!("{number} kills, {left} that left something");
    assert_eq!(left, 0);
}

pub fn nothing_is_left_by_some_kills() {
    kills(16);
}

pub fn nothing_is_left_by_many_kills() {
    kills(60);
}
