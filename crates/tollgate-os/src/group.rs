//! A process group whose first process is a child of this one.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, set_parent_process_death_signal};
use tollgate_model::traced::Ended;

use crate::process::{self, Child};
use crate::signals::Set;

/// A process in uninterruptible sleep dies only when that ends, and a thousand processes may take so long to die on a busy machine: the
/// wait for killed processes is bounded.
const PATIENCE: Duration = Duration::from_secs(1);
/// The interval between two looks at killed processes.
const LOOK: Duration = Duration::from_millis(1);

/// A group that a child leads. Dropping this kills all of it.
#[derive(Debug)]
pub struct Group {
    first: Child,
    /// Readable when the first process has ended, where the kernel has such descriptors.
    ended: Option<OwnedFd>,
}

impl Group {
    /// The group of a child that makes itself its first process, see [`lead`].
    pub fn of(first: Child) -> Self {
        let ended = first.pidfd().ok();
        Self { first, ended }
    }

    /// The first process, which has the group's number.
    pub fn first(&self) -> &Child {
        &self.first
    }

    /// How the first process ended, where it has. Its group is killed before it is waited for: until then no other group can have its
    /// number. The status is lost where SIGCHLD is ignored, and counts as 0.
    pub fn reap(&mut self) -> Option<Ended> {
        if let Ok(None) = process::peek(Some(self.first.pid()), libc::WEXITED | libc::WNOHANG) {
            return None;
        }
        let patience = self.kill_all();
        let ended = self.first.wait().unwrap_or(Ended::Exit(0));
        self.reap_heirs(patience);
        Some(ended)
    }

    /// Waits for the first process's end, but no longer than this.
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
        // One that does not die is left, and not waited for when this is dropped.
        self.first.abandon();
    }

    /// Kills its processes, and says how long to wait for their end: those that may not be killed, as where a filter of system calls refuses
    /// kill(2), may never end. A group's number is not given out anew while it has members.
    fn kill_all(&self) -> Duration {
        match process::kill(-self.first.pid(), libc::SIGKILL) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Duration::ZERO,
            _ => PATIENCE,
        }
    }

    /// Waits for the other processes of a killed group that came to this process.
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

/// Makes the calling process the first of a new group (setpgid(2)).
pub fn lead() {
    let _ = rustix::process::setpgid(None, None);
}

/// Moves a child, or with 0 the calling process, to the group that a child leads. Parent and child both make the call, and the first
/// one wins.
pub fn join(pid: libc::pid_t, group: libc::pid_t) {
    let _ = rustix::process::setpgid(Pid::from_raw(pid), Pid::from_raw(group));
}

/// A copy of this process that is in the group that `leader` leads, or leads one itself where that is 0, and does nothing but end all of the
/// group when this process is killed.
///
/// # Errors
/// Those of fork(2).
pub fn guard(leader: libc::pid_t) -> io::Result<Child> {
    let parent = process::own_pid();
    let guard = process::fork(|| keep(leader, parent))?;
    join(guard.pid(), leader);
    Ok(guard)
}

/// The guard's life, which makes system calls alone: a lock that another thread of its parent holds stays locked here.
fn keep(leader: libc::pid_t, parent: libc::pid_t) -> i32 {
    join(0, leader);
    let _ = rustix::thread::set_name(c"tollgate-guard");
    // The other end of a pipe is to see its end, whatever is copied here. Before Linux 5.9 it waits for the group's.
    // SAFETY: close_range(2) takes numbers. The descriptors are those of a copied process: their owners never run here.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    // What is sent to the whole group does not end it, and wakes it.
    let all = Set::all();
    all.block_only();
    // It differs where setpgid(2) failed.
    let is_there = own() == if leader == 0 { process::own_pid() } else { leader };
    if !is_there || set_parent_process_death_signal(Some(Signal::TERM)).is_err() {
        return 1;
    }
    while process::is_parent(parent) {
        if all.wait().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            return 1;
        }
    }
    // Itself among them.
    let _ = process::kill(0, libc::SIGKILL);
    0
}

/// The group of the calling process.
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
