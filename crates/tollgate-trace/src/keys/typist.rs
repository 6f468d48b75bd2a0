//! The thread at the keyboard: it types each key, and reads what comes for the screen until the command has ended.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_os::process;

use super::{Descriptors, ENDING, PATIENCE};
use crate::clock;
use crate::launch::signals;

/// Signals that ask to end.
pub(super) const ENDS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// The first key is typed when the command has shown something and then nothing for so long; or shown nothing for [`PATIENCE`].
const QUIET: Duration = Duration::from_millis(200);
/// The longest time that a command may go on to show something before the first key.
const STARTING: Duration = Duration::from_secs(10);
/// A command that was asked to end by SIGHUP has so long, and is killed then.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked whether the command has ended or a signal came.
const LOOK: Duration = Duration::from_millis(20);

/// What was typed.
#[derive(Debug, Default)]
pub(super) struct Typed {
    pub keys: Vec<Pressed>,
    /// Of the terminal, in the command.
    pub descriptors: Descriptors,
    pub has_ended_it: bool,
}

/// A key that was typed, by CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pressed {
    pub at_ns: u64,
    /// From then to the first byte for the screen.
    pub screen_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Typist<'a> {
    master: &'a OwnedFd,
    /// The path of the terminal.
    name: &'a str,
    pace: Duration,
    /// The command has ended.
    over: &'a AtomicBool,
}

impl<'a> Typist<'a> {
    pub fn new(master: &'a OwnedFd, name: &'a str, pace: Duration, over: &'a AtomicBool) -> Self {
        Self { master, name, pace, over }
    }

    /// Types the keys, and ends the command where it does not end by itself.
    pub fn type_all(self, keys: &[Vec<u8>]) -> Typed {
        self.await_the_start();
        let mut typed = Typed { descriptors: self.descriptors(), ..Typed::default() };
        for key in keys {
            if self.is_over() {
                break;
            }
            let Some(pressed) = self.press(key) else { break };
            typed.keys.push(pressed);
        }
        self.read_until(clock::now() + ns(ENDING), |_| false);
        for signal in [libc::SIGHUP, libc::SIGKILL] {
            if !self.over.load(Relaxed) {
                typed.has_ended_it = true;
                self.send(signal);
                let until = clock::now() + ns(GRACE);
                while clock::now() < until && !self.over.load(Relaxed) {
                    self.read(LOOK);
                }
            }
        }
        // What lingers behind the command may still write.
        while !self.over.load(Relaxed) {
            self.read(LOOK);
        }
        typed
    }

    fn await_the_start(self) {
        let began = clock::now();
        let mut last = None;
        self.read_until(began + ns(STARTING), |came| {
            let now = clock::now();
            last = came.or(last);
            now > last.map_or(began + ns(PATIENCE), |last| last + ns(QUIET))
        });
    }

    /// Types a key and waits for the answer, and at least until it is time for the next one. None where the terminal has gone.
    fn press(self, key: &[u8]) -> Option<Pressed> {
        // What is still there answers an earlier key.
        while self.read(Duration::ZERO).is_some() {}
        let at_ns = clock::now();
        if rustix::io::write(self.master, key) != Ok(key.len()) {
            return None;
        }
        let mut screen = None;
        self.read_until(at_ns + ns(PATIENCE.max(self.pace)), |came| {
            screen = screen.or(came);
            screen.is_some() && clock::now() >= at_ns + ns(self.pace)
        });
        Some(Pressed { at_ns, screen_ns: screen.map(|came: u64| came - at_ns) })
    }

    /// Reads until that moment, until `enough` says so, which is told when bytes came, or until the command has ended.
    fn read_until(self, until: u64, mut enough: impl FnMut(Option<u64>) -> bool) {
        while clock::now() < until && !self.is_over() {
            let left = Duration::from_nanos(until.saturating_sub(clock::now()));
            if enough(self.read(left.min(LOOK))) {
                return;
            }
        }
    }

    /// Waits for bytes for the screen: when they came.
    fn read(self, most: Duration) -> Option<u64> {
        let most = Timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
        let ready = poll(&mut [PollFd::new(self.master, PollFlags::IN)], Some(&most));
        let now = clock::now();
        if !matches!(ready, Ok(1..)) {
            return None;
        }
        let came = rustix::io::read(self.master, &mut [0; 1 << 14]).is_ok_and(|bytes| bytes > 0);
        if !came {
            // The terminal was hung up, and poll(2) does not wait for it any more.
            std::thread::sleep(LOOK);
        }
        came.then_some(now)
    }

    fn is_over(self) -> bool {
        self.over.load(Relaxed) || signals::came().is_some_and(|signal| ENDS.contains(&signal))
    }

    /// The leader of the terminal's session, which is the command: None where it has ended.
    fn leader(self) -> Option<libc::pid_t> {
        Some(rustix::termios::tcgetsid(self.master).ok()?.as_raw_nonzero().get())
    }

    fn send(self, signal: libc::c_int) {
        if let Some(leader) = self.leader() {
            let _ = process::kill(leader, signal);
        }
    }

    /// The standard streams, which other processes of the command have as well, and what the command has opened.
    fn descriptors(self) -> Descriptors {
        let mut found = Descriptors::from([0, 1, 2]);
        let Some(leader) = self.leader() else { return found };
        for entry in std::fs::read_dir(format!("/proc/{leader}/fd")).into_iter().flatten().flatten() {
            let Ok(to) = std::fs::read_link(entry.path()) else { continue };
            let is_terminal = to.as_os_str() == self.name || to.as_os_str() == "/dev/tty";
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            found.extend(number.filter(|_| is_terminal));
        }
        found
    }
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
