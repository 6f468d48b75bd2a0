//! Waits for the end of a trace: the processes end, the time is over, or a signal arrives.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_model::traced::Until;
use tollgate_os::signals::{Disposition, Set};

/// Signals that end the trace: from a terminal, or from a request to terminate.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// How often to check for remaining threads after the given processes have ended.
const LOOK: Duration = Duration::from_millis(5);
/// Longer than any trace lasts.
const DAYS: Duration = Duration::from_secs(10_000 * 24 * 3600);

/// While it lives, the signals that end the trace are read from a descriptor.
pub(super) struct Signals {
    descriptor: OwnedFd,
    before: Set,
}

impl Signals {
    pub fn hold() -> io::Result<Self> {
        // A signal that was ignored, as by nohup(1), stays ignored.
        let ending: Vec<_> =
            ENDING.into_iter().filter(|signal| !Disposition::of(*signal).is_ignored()).collect();
        let (set, before) = (Set::of(&ending), Set::blocked());
        let descriptor = set.descriptor()?;
        set.block();
        Ok(Self { descriptor, before })
    }

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

pub(super) struct Limits {
    pub time: Option<Duration>,
    pub every: Option<Duration>,
    /// For children of processes that have ended.
    pub linger: Duration,
}

pub(super) enum Next {
    End(Until),
    Interval,
    /// It is time to check for new processes.
    Look,
}

pub(super) struct Wait {
    left: Vec<OwnedFd>,
    end: Option<Instant>,
    interval: Option<(Instant, Duration)>,
    linger: Duration,
    patience: Option<Instant>,
}

impl Wait {
    pub fn begin(left: Vec<OwnedFd>, limits: &Limits) -> Self {
        let now = Instant::now();
        Self {
            left,
            end: limits.time.and_then(|time| now.checked_add(time)),
            interval: limits.every.and_then(|every| Some((now.checked_add(every)?, every))),
            linger: limits.linger,
            patience: None,
        }
    }

    /// Waits for the next event. `alive` counts traced threads that have not ended. With `looks`, only `alive` tells when all is over.
    pub fn next(&mut self, signals: &Signals, looks: bool, alive: impl Fn() -> u64) -> io::Result<Next> {
        loop {
            let now = Instant::now();
            if self.left.is_empty() {
                let linger = if looks { Duration::MAX } else { self.linger };
                let until = *self.patience.get_or_insert(now.checked_add(linger).unwrap_or(now + DAYS));
                if alive() == 0 || now >= until {
                    return Ok(Next::End(Until::Exited));
                }
            }
            if self.end.is_some_and(|end| now >= end) {
                return Ok(Next::End(Until::Time));
            }
            if let Some((next, every)) = &mut self.interval
                && now >= *next
            {
                // A missed interval, for example while this process was stopped, becomes part of the next.
                while *next <= now {
                    *next += *every;
                }
                return Ok(Next::Interval);
            }
            if self.poll(signals, now)? {
                return Ok(Next::End(Until::Signal));
            }
            if looks {
                return Ok(Next::Look);
            }
        }
    }

    /// Waits until a process ends, a time is reached, or a signal arrives. Returns `true` for a signal.
    fn poll(&mut self, signals: &Signals, now: Instant) -> io::Result<bool> {
        let look = self.left.is_empty().then(|| now + LOOK);
        let moments = self.end.into_iter().chain(self.interval.map(|(next, _)| next)).chain(look);
        let timeout = moments.min().map(|next| timespec(next.saturating_duration_since(now)));
        let mut ends = vec![PollFd::new(&signals.descriptor, PollFlags::IN)];
        ends.extend(self.left.iter().map(|process| PollFd::new(process, PollFlags::IN)));
        match poll(&mut ends, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !ends[0].revents().is_empty() && signals.take() {
            return Ok(true);
        }
        // A pidfd is readable when all threads of its process have ended (pidfd_open(2)).
        let mut have_ended =
            ends[1..].iter().map(|end| !end.revents().is_empty()).collect::<Vec<_>>().into_iter();
        drop(ends);
        self.left.retain(|_| !have_ended.next().unwrap_or(false));
        Ok(false)
    }
}

fn timespec(time: Duration) -> Timespec {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos().into() }
}
