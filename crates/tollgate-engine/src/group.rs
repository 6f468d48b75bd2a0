//! A process group of a child: all its processes end when its first process ends, and when this process ends for any
//! reason.
//!
//! The parent is the subreaper (prctl(2)) of its measuring processes: one may end with children of its own,
//! which an init would reap at its leisure. Where the parent is killed, each process dies with its parent
//! (PR_SET_PDEATHSIG).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tollgate_os::children::Inherited;

use super::ending::Ending;
use super::interrupt;
use super::worker::die_with_parent;

/// Runs `work` in the first process of a new group, a fork of this one, which exits with the status that it returns.
/// The group is killed at `deadline`, or when the user asks to stop. `tick` is called repeatedly.
///
/// # Errors
/// When processes or descriptors run out.
pub fn run(work: impl FnOnce() -> i32, deadline: Instant, mut tick: impl FnMut()) -> io::Result<Ending> {
    /// The exit status of a first process that panicked.
    const PANICKED: i32 = 101;
    let (alive, held) = pipe()?;
    // SAFETY: getpid(2) has no preconditions.
    let own = unsafe { libc::getpid() };
    let first = fork(|| {
        // SAFETY: plain calls on our own process and descriptor. A program inherits ignored signals, so they get
        // their default action back.
        unsafe {
            libc::setpgid(0, 0);
            libc::close(held.as_raw_fd());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
        die_with_parent(own);
        catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED)
    })?;
    // SAFETY: our child, which makes the same call; the first one wins.
    unsafe { libc::setpgid(first, first) };
    let mut group = Group::of(first);
    let guard = fork(|| guard(first, &alive, &held))?;
    // SAFETY: as above. The guard must be in the group before the group can end.
    unsafe { libc::setpgid(guard, first) };
    loop {
        if let Some(ending) = group.reap() {
            return Ok(ending);
        }
        let cut = match interrupt::requested() {
            Some(_) => Some(Ending::Interrupted),
            None => (Instant::now() >= deadline).then_some(Ending::OutOfTime),
        };
        if let Some(ending) = cut {
            group.kill();
            return Ok(ending);
        }
        tick();
        group.wait_a_little();
    }
}

/// Kills the group when the other end of `alive` is closed: the parent has ended.
fn guard(group: libc::pid_t, alive: &OwnedFd, held: &OwnedFd) -> i32 {
    let mut byte = 0_u8;
    // SAFETY: plain calls on our own process and descriptors; `byte` is valid for writing its own length.
    unsafe {
        libc::setpgid(0, group);
        libc::close(held.as_raw_fd());
        while libc::read(alive.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 {}
        // The group differs only if setpgid(2) failed.
        if libc::getpgrp() == group {
            libc::kill(0, libc::SIGKILL);
        }
    }
    0
}

/// Forks a child that runs `work` and exits with its status; the child's id.
fn fork(work: impl FnOnce() -> i32) -> io::Result<libc::pid_t> {
    // SAFETY: other threads, if any, hold no lock that the work needs: the C library makes its own safe across fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let status = work();
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(status) }
        }
        pid => Ok(pid),
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is valid for writing two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Kills daemons: processes that left their group and were reparented to this process. Children from before the first
/// measurement are left alone.
pub fn end_strays(inherited: &Inherited) {
    for pid in inherited.later() {
        let mut group = Group { pid, ended: None };
        group.kill();
    }
}

/// A group whose first process is our child. Dropping this kills all of it.
pub(super) struct Group {
    pid: libc::pid_t,
    /// Becomes readable when the first process ends, where the kernel has such descriptors.
    ended: Option<OwnedFd>,
}

impl Group {
    /// The group of a child that makes itself the group's first process.
    pub fn of(pid: libc::pid_t) -> Self {
        Self { pid, ended: pidfd(pid) }
    }

    /// Checks whether the process has ended. Its group is killed before it is reaped: until then no other group can
    /// have its id.
    pub fn reap(&mut self) -> Option<Ending> {
        // SAFETY: an all-zero siginfo_t is valid, and stays so while the child runs.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is valid for writing.
        let looked = unsafe { libc::waitid(libc::P_PID, self.pid as libc::id_t, &mut info, look) };
        // SAFETY: for waitid(2) the field is the child's number, or 0.
        if looked == 0 && unsafe { info.si_pid() } == 0 {
            return None;
        }
        self.end_group();
        let mut status = 0;
        // SAFETY: `pid` is our child and has not been waited for; `status` is valid for writing.
        let waited = unsafe { libc::waitpid(self.pid, &mut status, 0) };
        let ours = waited == self.pid;
        reap_heirs(self.pid);
        self.pid = 0;
        // The status is lost only where SIGCHLD is ignored.
        Some(if ours { Ending::from_wait_status(status) } else { Ending::Finished })
    }

    /// Waits for the process's end, but not long. On one processor each wake-up of the parent disturbs the
    /// measurement, so they are rare.
    pub fn wait_a_little(&self) {
        const LITTLE: Duration = Duration::from_millis(40);
        match &self.ended {
            Some(ended) => {
                let mut poll = libc::pollfd { fd: ended.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one valid pollfd.
                unsafe { libc::poll(&mut poll, 1, LITTLE.as_millis() as libc::c_int) };
            }
            None => std::thread::sleep(LITTLE / 4),
        }
    }

    /// Kills the group, which holds all that the process started.
    fn end_group(&self) {
        // SAFETY: the group was made by our child; a group id is not given out anew while it has members.
        unsafe { libc::kill(-self.pid, libc::SIGKILL) };
    }

    /// Kills the whole group and waits for its end.
    pub fn kill(&mut self) {
        if self.pid <= 0 {
            return;
        }
        self.end_group();
        // SAFETY: `pid` is our child and has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // A process in uninterruptible sleep dies only when that ends, so the wait is bounded.
        const PATIENCE: Duration = Duration::from_secs(1);
        let began = Instant::now();
        // SAFETY: as above; WNOHANG returns at once.
        while unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) } == 0
            && began.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        reap_heirs(self.pid);
        self.pid = 0;
    }
}

/// Reaps the other processes of a killed group.
fn reap_heirs(group: libc::pid_t) {
    /// A thousand processes may take so long to die on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(1);
    let began = Instant::now();
    // SAFETY: waits only for children of ours that are in this group; it is ours until the last is waited for.
    while let outcome @ 0.. = unsafe { libc::waitpid(-group, std::ptr::null_mut(), libc::WNOHANG) } {
        if outcome == 0 {
            if began.elapsed() >= PATIENCE {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

fn pidfd(pid: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: pidfd_open(2) takes a process id and flags.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    // SAFETY: the descriptor is new and has no other owner.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
