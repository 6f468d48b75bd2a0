//! A group of processes that is this process's own: all that is started in it ends with its first process, and with this
//! one, however that ends.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tollgate_os::children::Inherited;

use super::ending::Ending;
use super::interrupt;
use super::worker::die_with_parent;

/// Does `work` in the first process of a new group, a copy of this one, which ends with the status that it returns. At
/// `deadline`, or when the user asks, the group is ended. `tick` is called every now and then.
///
/// # Errors
/// When processes or descriptors run out.
pub fn run(work: impl FnOnce() -> i32, deadline: Instant, mut tick: impl FnMut()) -> io::Result<Ending> {
    /// What a first process ends with that panicked.
    const PANICKED: i32 = 101;
    let (alive, held) = pipe()?;
    // SAFETY: getpid(2) has no preconditions.
    let own = unsafe { libc::getpid() };
    let first = fork(|| {
        // SAFETY: plain calls on our own process and descriptor. What is ignored here, a program would find ignored too.
        unsafe {
            libc::setpgid(0, 0);
            libc::close(held.as_raw_fd());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
        die_with_parent(own);
        catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED)
    })?;
    // SAFETY: our child, which does the same: whoever comes first.
    unsafe { libc::setpgid(first, first) };
    let mut group = Group::of(first);
    let guard = fork(|| guard(first, &alive, &held))?;
    // SAFETY: as above. It must be in the group before anybody can end that.
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

/// Ends the group when nobody holds the other end of `alive` any more: then the process above is gone.
fn guard(group: libc::pid_t, alive: &OwnedFd, held: &OwnedFd) -> i32 {
    let mut byte = 0_u8;
    // SAFETY: plain calls on our own process and descriptors; `byte` is valid for writing its own length.
    unsafe {
        libc::setpgid(0, group);
        libc::close(held.as_raw_fd());
        while libc::read(alive.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 {}
        // Its own group may be another one only where it was never let into this one.
        if libc::getpgrp() == group {
            libc::kill(0, libc::SIGKILL);
        }
    }
    0
}

/// A copy of this process that does `work` and ends with its status; the copy's number.
fn fork(work: impl FnOnce() -> i32) -> io::Result<libc::pid_t> {
    // SAFETY: the copy's other threads, if this process has any, hold no lock that the work needs: the C library makes its
    // own safe across fork.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let status = work();
            // SAFETY: ends the copy without running what belongs to the original.
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
    // SAFETY: both were just made and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Ends what left its group before that ended, and so became this process's child: a daemon. Children that this process had
/// before it measured anything are left alone.
pub fn end_strays(inherited: &Inherited) {
    for pid in inherited.later() {
        let mut group = Group { pid, ended: None };
        group.kill();
    }
}

/// A group whose first process is our child. All of it is gone when this is dropped.
pub(super) struct Group {
    pid: libc::pid_t,
    /// Becomes readable when the first process ends, where the kernel has such descriptors.
    ended: Option<OwnedFd>,
}

impl Group {
    /// The group of a child that makes itself its first process.
    pub fn of(pid: libc::pid_t) -> Self {
        Self { pid, ended: pidfd(pid) }
    }

    /// Looks whether the process has ended. What it started is ended before its number is given back:
    /// until then no other group can bear it.
    pub fn reap(&mut self) -> Option<Ending> {
        // SAFETY: an all-zero siginfo_t is valid, and is what "not yet" leaves.
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
        // Somebody else can have waited for it only where SIGCHLD is ignored.
        Some(if ours { Ending::from_wait_status(status) } else { Ending::Finished })
    }

    /// Every wake-up of the parent is a disturbance where there is only one processor: rare, and cut
    /// short by the process's end.
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

    /// What the process started belongs to its group, and goes with it.
    fn end_group(&self) {
        // SAFETY: the group was made by our child; a group id is not given out anew while it has members.
        unsafe { libc::kill(-self.pid, libc::SIGKILL) };
    }

    /// Ends all of it, and waits until it is gone.
    pub fn kill(&mut self) {
        if self.pid <= 0 {
            return;
        }
        self.end_group();
        // SAFETY: `pid` is our child and has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // A process in an uninterruptible sleep dies when that ends, whoever waits: not we, for ever.
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

/// Waits for what a group's first process has left, once all of it has been killed.
fn reap_heirs(group: libc::pid_t) {
    /// As long as a thousand processes may take to die on a busy machine.
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
    // SAFETY: the descriptor was just made and belongs to nobody else.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
