//! The processes of an environment on this machine: those that this process created since a moment, and all that they started.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate_os::children::Inherited;
use tollgate_os::process;

use crate::machine::interrupt;
use crate::sides::session::connection::Gone;

/// The interval between two checks for a request to stop.
const LOOK: Duration = Duration::from_millis(250);

/// The processes of an environment that runs. This process is their [`Subreaper`](tollgate_os::children::Subreaper).
pub struct Members<'i> {
    before: &'i Inherited,
    pids: Vec<libc::pid_t>,
    /// Each becomes readable when its process ends (pidfd_open(2)).
    open: Vec<OwnedFd>,
}

impl<'i> Members<'i> {
    /// Returns the processes that started after `before` and run now.
    ///
    /// # Errors
    /// See [`Inherited::descendants`].
    pub fn now(before: &'i Inherited) -> io::Result<Self> {
        let pids = before.descendants()?;
        // A process that has ended meanwhile need not be waited for.
        let open = pids.iter().filter_map(|pid| process::pidfd(*pid).ok()).collect();
        Ok(Self { before, pids, open })
    }

    /// Returns their process IDs.
    pub fn pids(&self) -> &[libc::pid_t] {
        &self.pids
    }

    /// Waits until the last of them, and of those that they still start, has ended. Returns that moment, or `None` if one of them runs
    /// longer than `patience`.
    ///
    /// # Errors
    /// The user's signal.
    pub fn gone(mut self, patience: Duration) -> Result<Option<Instant>, Gone> {
        let until = Instant::now() + patience;
        let mut last = Instant::now();
        loop {
            while !self.open.is_empty() {
                interrupt::check(Gone::Interrupted)?;
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                let ended = ended(&self.open, left.min(LOOK));
                if ended.iter().any(|ended| *ended) {
                    last = Instant::now();
                }
                let mut ended = ended.into_iter();
                self.open.retain(|_| !ended.next().unwrap_or_default());
            }
            match Self::now(self.before) {
                Ok(others) if others.pids.is_empty() => return Ok(Some(last)),
                // One of them may have ended between the two checks.
                Ok(others) if others.open.is_empty() && Instant::now() < until => {}
                Ok(others) => self = others,
                Err(_) => return Ok(None),
            }
        }
    }
}

/// Waits up to `most` until any of them ends. Returns for each whether it has ended.
fn ended(open: &[OwnedFd], most: Duration) -> Vec<bool> {
    let most = Timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: most.subsec_nanos().into() };
    let mut all: Vec<PollFd<'_>> = open.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
    match poll(&mut all, Some(&most)) {
        Ok(_) => all.iter().map(|one| !one.revents().is_empty()).collect(),
        Err(_) => vec![false; open.len()],
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use tollgate_os::children::Subreaper;

    use super::*;
    use crate::sides::session::tests::alone;

    #[test]
    fn the_end_is_that_of_the_last_process_an_orphan_of_another_session_included() {
        alone(|| {
            let _subreaper = Subreaper::begin();
            let before = Inherited::now();
            let mut shell = Command::new("setsid");
            // The second process leaves the session, outlives the first, and starts another one before it ends.
            shell
                .args(["sh", "-c", "exec 3<&0; setsid sh -c 'cat <&3; sleep 0.1' & cat"])
                .stdin(Stdio::piped());
            let mut shell = shell.spawn().expect("setsid(1) of util-linux");
            while before.descendants().is_ok_and(|all| all.len() < 3) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let members = Members::now(&before).expect("/proc");
            let number = members.pids().len();
            let began = Instant::now();
            drop(shell.stdin.take());
            let last = members.gone(Duration::from_secs(60)).expect("no signal").expect("they end");
            let _ = shell.wait();
            crate::machine::group::end_strays(&before);
            let is_none_left = before.descendants().is_ok_and(|left| left.is_empty());
            number >= 3 && last - began >= Duration::from_millis(90) && is_none_left
        });
    }

    #[test]
    fn what_does_not_end_is_not_waited_for_beyond_the_patience() {
        alone(|| {
            let _subreaper = Subreaper::begin();
            let before = Inherited::now();
            let mut sleep = Command::new("sleep").arg("100").spawn().expect("it starts");
            let members = Members::now(&before).expect("/proc");
            let is_given_up = matches!(members.gone(Duration::from_millis(30)), Ok(None));
            let _ = (sleep.kill(), sleep.wait());
            is_given_up
        });
    }
}
