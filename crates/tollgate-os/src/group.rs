//! A process group whose first process is a child of this one.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use tollgate_model::traced::Ended;

use crate::process::{self, Child};
use crate::signals::Set;

/// Upper bound of the wait for killed processes. A process in uninterruptible sleep dies only when that sleep ends, and a
/// thousand processes may take this long to die on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// A process group that a child leads. Dropping this kills the whole group.
#[derive(Debug)]
pub struct Group {
    first: Child,
    /// Readable when the first process has ended; `None` if the kernel has no pidfds.
    ended: Option<OwnedFd>,
}

impl Group {
    /// Takes a child that makes itself the leader of a group, see [`lead`].
    pub fn of(first: Child) -> Self {
        let ended = first.pidfd().ok();
        Self { first, ended }
    }

    /// Returns the leader, whose process number is also the group's.
    pub fn first(&self) -> &Child {
        &self.first
    }

    /// Returns how the leader ended, if it has. The group is killed before the leader is waited for: until then no other
    /// group can get its number. If SIGCHLD is ignored, the status is lost and counts as 0.
    pub fn reap(&mut self) -> Option<Ended> {
        if let Ok(None) = process::peek(Some(self.first.pid()), libc::WEXITED | libc::WNOHANG) {
            return None;
        }
        let patience = self.kill_all();
        let ended = self.first.wait().unwrap_or(Ended::Exit(0));
        self.reap_heirs(patience);
        Some(ended)
    }

    /// Waits for the leader to end, but no longer than `most`.
    pub fn wait_a_while(&self, most: Duration) {
        match &self.ended {
            Some(ended) => {
                let most =
                    Timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: most.subsec_nanos().into() };
                let _ = poll(&mut [PollFd::new(ended, PollFlags::IN)], Some(&most));
            }
            None => std::thread::sleep(most / 4),
        }
    }

    /// Kills the whole group and waits for its end, for a bounded time.
    pub fn kill(&mut self) {
        if self.first.is_reaped() {
            return;
        }
        let patience = self.kill_all();
        self.first.kill(libc::SIGKILL);
        let began = Instant::now();
        while let Ok(None) = self.first.try_wait()
            && began.elapsed() < patience
        {
            std::thread::sleep(LOOK);
        }
        self.reap_heirs(patience);
        // A process that does not die is abandoned: dropping it must not wait for it.
        self.first.abandon();
    }

    /// Kills the group's processes, and returns how long to wait for their end. Processes that may not be killed, as when a
    /// seccomp filter refuses kill(2), may never end. The kernel does not reuse a group's number while the group has
    /// members.
    fn kill_all(&self) -> Duration {
        match process::kill(-self.first.pid(), libc::SIGKILL) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Duration::ZERO,
            _ => PATIENCE,
        }
    }

    /// Waits for the other processes of a killed group that were reparented to this process.
    fn reap_heirs(&self, patience: Duration) {
        let began = Instant::now();
        while let Ok(reaped) = process::wait4(-self.first.pid(), libc::WNOHANG) {
            if reaped.is_none() {
                if began.elapsed() >= patience {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes the calling process the leader of a new group (setpgid(2)).
pub fn lead() {
    let _ = rustix::process::setpgid(None, None);
}

/// Moves a child, or the calling process if `pid` is 0, to the group that a child leads. Parent and child both make the
/// call; the first one takes effect.
pub fn join(pid: libc::pid_t, group: libc::pid_t) {
    let _ = rustix::process::setpgid(Pid::from_raw(pid), Pid::from_raw(group));
}

/// Forks a guard, which only waits, and kills its whole group when this process is killed. The guard is in the group of
/// `leader`, or leads a group of its own if `leader` is 0.
///
/// # Errors
/// Those of fork(2).
pub fn guard(leader: libc::pid_t) -> io::Result<Child> {
    let parent = process::own_pid();
    let guard = process::fork(|| keep(leader, parent))?;
    join(guard.pid(), leader);
    Ok(guard)
}

/// The guard's main function. It makes only system calls: a lock that another thread of its parent holds stays locked here.
fn keep(leader: libc::pid_t, parent: libc::pid_t) -> i32 {
    join(0, leader);
    let _ = rustix::thread::set_name(c"tollgate-guard");
    // Readers of a pipe must see its end although this process copied the other end. Before Linux 5.9 they see it only when
    // the group ends.
    // SAFETY: close_range(2) takes numbers. The descriptors belong to a copied process, whose owners never run here.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    // A signal sent to the whole group does not end the guard, but wakes it.
    let all = Set::all();
    all.block_only();
    // The groups differ if setpgid(2) failed.
    let is_there = own() == if leader == 0 { process::own_pid() } else { leader };
    if !is_there || set_parent_process_death_signal(Some(Signal::TERM)).is_err() {
        return 1;
    }
    while process::is_parent(parent) {
        if all.wait().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            return 1;
        }
    }
    // This includes the guard itself.
    let _ = process::kill(0, libc::SIGKILL);
    0
}

fn own() -> libc::pid_t {
    rustix::process::getpgrp().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::children::{Subreaper, tests::ALONE};
    use crate::process::fork_bound;

    fn forever() -> ! {
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn all_of_a_group_ends_with_its_first_process_and_when_it_is_dropped() {
        let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _subreaper = Subreaper::begin();
        for leaves in [true, false] {
            let shared = crate::shared::Shared::<1>::new().unwrap();
            let child = fork_bound(|| {
                lead();
                let Ok(second) = process::fork(|| forever()) else { return 1 };
                shared[0].store(second.pid().cast_unsigned().into(), std::sync::atomic::Ordering::Release);
                if leaves {
                    process::exit_now(9);
                }
                forever()
            })
            .unwrap();
            join(child.pid(), child.pid());
            let mut group = Group::of(child);
            let second = || shared[0].load(std::sync::atomic::Ordering::Acquire) as libc::pid_t;
            while second() == 0 {
                group.wait_a_while(LOOK);
            }
            if leaves {
                let ended = loop {
                    group.wait_a_while(LOOK);
                    if let Some(ended) = group.reap() {
                        break ended;
                    }
                };
                assert_eq!(ended, Ended::Exit(9));
            } else {
                assert_eq!(group.reap(), None);
            }
            drop(group);
            assert!(process::is_gone(second()));
        }
    }

    #[test]
    fn a_guard_holds_no_pipe_open() {
        let (mut pipe, end) = io::pipe().unwrap();
        let group = Group::of(guard(0).unwrap());
        drop(end);
        let long = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&long)), Ok(1), "the guard has it");
        assert_eq!(io::Read::read(&mut pipe, &mut [0]).unwrap(), 0);
        assert!(!group.first().is_reaped());
    }
}
