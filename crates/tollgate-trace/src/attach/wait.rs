//! Waiting for the end of a trace: the processes end, the time is over, or a signal comes.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_model::traced::Until;
use tollgate_os::signals::{Disposition, Set};

use super::given::Given;

/// Signals that end the trace: of a terminal, and of those who end processes.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// So often it is looked whether threads are left, once the processes that were given have ended.
const LOOK: Duration = Duration::from_millis(5);

/// As long as it lives, the signals that end the trace are read from a descriptor.
pub(super) struct Signals {
    descriptor: OwnedFd,
    before: Set,
}

impl Signals {
    pub fn hold() -> io::Result<Self> {
        // One that was ignored, as by nohup(1), stays so.
        let ending: Vec<_> =
            ENDING.into_iter().filter(|signal| !Disposition::of(*signal).is_ignored()).collect();
        let (set, before) = (Set::of(&ending), Set::blocked());
        let descriptor = set.descriptor()?;
        set.block();
        Ok(Self { descriptor, before })
    }

    /// Takes one that has come.
    fn take(&self) -> bool {
        let mut record = [0u8; size_of::<libc::signalfd_siginfo>()];
        matches!(rustix::io::read(&self.descriptor, &mut record), Ok(read) if read > 0)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.before.block_only();
    }
}

/// How long it is waited.
pub(super) struct Limits {
    pub time: Option<Duration>,
    /// For children of the processes that have ended.
    pub linger: Duration,
}

/// Waits for the end. `alive`: threads that are traced and have not ended.
pub(super) fn wait(
    given: &[Given],
    limits: &Limits,
    signals: &Signals,
    alive: impl Fn() -> u64,
) -> io::Result<Until> {
    let end = limits.time.and_then(|time| Instant::now().checked_add(time));
    let mut left: Vec<&OwnedFd> = given.iter().map(|one| &one.descriptor).collect();
    let mut patience: Option<Instant> = None;
    loop {
        let now = Instant::now();
        if left.is_empty() {
            let until = *patience.get_or_insert(now + limits.linger);
            if alive() == 0 || now >= until {
                return Ok(Until::Exited);
            }
        }
        if end.is_some_and(|end| now >= end) {
            return Ok(Until::Time);
        }
        let look = left.is_empty().then(|| now + LOOK);
        let next = end.into_iter().chain(look).min();
        let mut ends = vec![PollFd::new(&signals.descriptor, PollFlags::IN)];
        ends.extend(left.iter().map(|process| PollFd::new(*process, PollFlags::IN)));
        let timeout = next.map(|next| timespec(next.saturating_duration_since(now)));
        match poll(&mut ends, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !ends[0].revents().is_empty() && signals.take() {
            return Ok(Until::Signal);
        }
        // A process's descriptor is readable when all of its threads have ended (pidfd_open(2)).
        let has_ended: Vec<bool> = ends[1..].iter().map(|end| !end.revents().is_empty()).collect();
        drop(ends);
        let mut has_ended = has_ended.into_iter();
        left.retain(|_| !has_ended.next().unwrap_or(false));
    }
}

fn timespec(time: Duration) -> Timespec {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}
