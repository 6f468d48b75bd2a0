//! The thread at the keyboard: it types each key, and reads what arrives for the screen until the command has ended.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_os::process;

use super::{Descriptors, ENDING, PATIENCE};
use crate::clock;
use crate::launch::signals;

pub(super) const ENDS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// The first key is typed after the command has shown something and then nothing for this long, or nothing for [`PATIENCE`].
const QUIET: Duration = Duration::from_millis(200);
/// The longest time for which a command may keep writing to the screen before the first key.
const STARTING: Duration = Duration::from_secs(10);
/// How long a command may take to end after SIGHUP before it is killed.
const GRACE: Duration = Duration::from_secs(1);
/// How often to check whether the command has ended or a signal arrived.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct Typed {
    pub keys: Vec<Pressed>,
    /// The command's descriptors of the terminal.
    pub descriptors: Descriptors,
    pub has_ended_it: bool,
}

/// A key that was typed, by CLOCK_MONOTONIC in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pressed {
    pub at_ns: u64,
    /// Nanoseconds from then to the first byte for the screen.
    pub screen_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Typist<'a> {
    master: &'a OwnedFd,
    /// The path of the terminal.
    name: &'a str,
    pace: Duration,
    over: &'a AtomicBool,
}

impl<'a> Typist<'a> {
    pub fn new(master: &'a OwnedFd, name: &'a str, pace: Duration, over: &'a AtomicBool) -> Self {
        Self { master, name, pace, over }
    }

    /// Types the keys, and ends the command if it does not end by itself.
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
        // Processes that the command leaves may still write.
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

    /// Types a key and waits for the answer, at least until the next key is due. `None` if the terminal is gone.
    fn press(self, key: &[u8]) -> Option<Pressed> {
        // Remaining output answers an earlier key.
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

    /// Reads until that time, until the command has ended, or until `enough`, given the time when bytes arrived, is true.
    fn read_until(self, until: u64, mut enough: impl FnMut(Option<u64>) -> bool) {
        while clock::now() < until && !self.is_over() {
            let left = Duration::from_nanos(until.saturating_sub(clock::now()));
            if enough(self.read(left.min(LOOK))) {
                return;
            }
        }
    }

    /// Waits for bytes for the screen; returns when they arrived.
    fn read(self, most: Duration) -> Option<u64> {
        let most = Timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
        let ready = poll(&mut [PollFd::new(self.master, PollFlags::IN)], Some(&most));
        let now = clock::now();
        if !matches!(ready, Ok(1..)) {
            return None;
        }
        let came = rustix::io::read(self.master, &mut [0; 1 << 14]).is_ok_and(|bytes| bytes > 0);
        if !came {
            // The terminal was hung up, so poll(2) no longer waits for it.
            std::thread::sleep(LOOK);
        }
        came.then_some(now)
    }

    fn is_over(self) -> bool {
        self.over.load(Relaxed) || signals::came().is_some_and(|signal| ENDS.contains(&signal))
    }

    /// Returns the leader of the terminal's session, which is the command; `None` if it has ended.
    fn leader(self) -> Option<libc::pid_t> {
        Some(rustix::termios::tcgetsid(self.master).ok()?.as_raw_nonzero().get())
    }

    fn send(self, signal: libc::c_int) {
        if let Some(leader) = self.leader() {
            let _ = process::kill(leader, signal);
        }
    }

    /// Returns the standard streams, which all processes of the command have, and the terminal's descriptors in the command.
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
