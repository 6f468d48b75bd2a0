//! Processes: fork(2), wait4(2), and what prctl(2) changes for a child.

use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::{io, mem, os::unix::process::CommandExt};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use tollgate_model::traced::Ended;

use crate::rusage::Usage;

/// The exit status of a child that panicked, as in std.
const PANICKED: i32 = 101;
/// The exit status of a child whose parent ended before the child was bound to it.
const ORPHANED: i32 = 2;

/// A child of this process. Dropping it kills it and reaps it.
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
    is_reaped: bool,
}

/// Forks a child that runs `life` and exits with its result, or with 101 if it panics. No destructor of the parent runs in
/// the child.
///
/// Only the calling thread exists in the child: a lock that another thread holds stays locked there. If this process has
/// several threads, `life` may call only what signal-safety(7) allows. With one thread it may allocate.
///
/// # Errors
/// Those of fork(2).
pub fn fork(life: impl FnOnce() -> i32) -> io::Result<Child> {
    // SAFETY: the child has a copy of this thread and of its memory, and never returns from this function. It accesses
    // memory shared with its parent through atomics or system calls.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let status = catch_unwind(AssertUnwindSafe(life)).unwrap_or(PANICKED);
            exit_now(status)
        }
        pid => Ok(Child { pid, is_reaped: false }),
    }
}

/// Like [`fork`], but the kernel kills the child when the thread that made it ends.
///
/// # Errors
/// Those of fork(2).
pub fn fork_bound(life: impl FnOnce() -> i32) -> io::Result<Child> {
    let parent = own_pid();
    fork(|| {
        die_with_parent(parent);
        life()
    })
}

/// Gives up the controlling terminal of a process that is not a session leader. Programs that it starts have none either:
/// one that asks for a password on /dev/tty gets an error, whereas a background process would be stopped.
///
/// # Errors
/// EMFILE and the like, if /dev/tty cannot be opened although it may exist.
pub fn leave_terminal() -> Result<(), Errno> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(c"/dev/tty", flags, Mode::empty()) {
        Ok(terminal) => {
            // SAFETY: TIOCNOTTY takes no argument and touches no memory of this process.
            match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) } {
                0 => Ok(()),
                _ => Err(Errno::NOTTY),
            }
        }
        Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::INTR)) => Err(error),
        // There is no terminal, or no file that leads to it.
        Err(_) => Ok(()),
    }
}

/// Ends this process without destructors and atexit(3) handlers, for a forked copy of a process (_exit(2)).
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit(2) has no preconditions.
    unsafe { libc::_exit(status) }
}

/// Returns the number of this process. It is not cached, so it is correct in a child.
pub fn own_pid() -> libc::pid_t {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Makes the kernel kill this process when `parent` ends (PR_SET_PDEATHSIG of prctl(2)); exits at once if `parent` has
/// already ended.
pub fn die_with_parent(parent: libc::pid_t) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if !is_parent(parent) {
        exit_now(ORPHANED);
    }
}

pub(crate) fn is_parent(pid: libc::pid_t) -> bool {
    // `None` means a parent in another PID namespace, which getppid(2) cannot name.
    rustix::process::getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == pid)
}

/// Binds a program that is about to be started to this thread, as [`fork_bound`] binds a child. `prepare` runs in it just
/// before execve(2), and may call only what signal-safety(7) allows.
pub fn bind(command: &mut Command, prepare: impl Fn() -> io::Result<()> + Send + Sync + 'static) {
    let parent = own_pid();
    let before_exec = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if is_parent(parent) { prepare() } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: the closure only makes system calls, and `prepare` promises the same.
    unsafe { command.pre_exec(before_exec) };
}

/// A started program, which is killed when this is dropped.
#[derive(Debug)]
pub struct Program(pub std::process::Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Both do nothing if it was already waited for. If it may not be killed, it is not waited for: it may never end.
        if self.0.kill().is_ok() {
            let _ = self.0.wait();
        }
    }
}

impl Child {
    /// Adopts a child that [`fork`] did not make and that was not waited for, such as an orphan reparented to this process.
    pub fn adopt(pid: libc::pid_t) -> Self {
        Self { pid, is_reaped: false }
    }

    /// Returns its number, which the kernel does not reuse before it is waited for.
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Returns whether it was waited for.
    pub fn is_reaped(&self) -> bool {
        self.is_reaped
    }

    /// Returns a descriptor of the process (pidfd_open(2)), readable when it has ended.
    ///
    /// # Errors
    /// ENOSYS before Linux 5.3.
    pub fn pidfd(&self) -> io::Result<OwnedFd> {
        pidfd(self.pid)
    }

    /// Sends it a signal; does nothing if it was waited for.
    pub fn kill(&self, signal: libc::c_int) {
        if !self.is_reaped {
            // It is our child and was not waited for, so it exists.
            let _ = kill(self.pid, signal);
        }
    }

    /// Waits for its end, regardless of signals and stops in the meantime.
    ///
    /// # Errors
    /// ECHILD if it was already waited for, or SIGCHLD is ignored.
    pub fn wait(&mut self) -> io::Result<Ended> {
        loop {
            if let Some(ended) = self.look(0)? {
                return Ok(ended);
            }
        }
    }

    /// Returns how it ended, if it has.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn try_wait(&mut self) -> io::Result<Option<Ended>> {
        self.look(libc::WNOHANG)
    }

    fn look(&mut self, flags: libc::c_int) -> io::Result<Option<Ended>> {
        loop {
            match self.next(flags) {
                Ok(Some(Wait { status: Status::Ended(ended), .. })) => return Ok(Some(ended)),
                Ok(None) => return Ok(None),
                Ok(Some(_)) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for its next stop or end, see [`wait4`].
    ///
    /// # Errors
    /// EINTR, and as [`Self::wait`].
    pub fn next(&mut self, flags: libc::c_int) -> io::Result<Option<Wait>> {
        if self.is_reaped {
            return Err(io::Error::from_raw_os_error(libc::ECHILD));
        }
        let next = wait4(self.pid, flags);
        self.is_reaped = match &next {
            Ok(wait) => matches!(wait, Some(Wait { status: Status::Ended(_), .. })),
            Err(error) => error.kind() != io::ErrorKind::Interrupted,
        };
        next
    }

    /// Releases it without killing it, so that others can wait for it.
    pub fn leave(mut self) {
        self.abandon();
    }

    pub(crate) fn abandon(&mut self) {
        self.is_reaped = true;
    }

    /// Kills it and waits for its end.
    ///
    /// # Errors
    /// As [`Self::wait`]; EPERM if a seccomp filter refuses kill(2). Then it is left alone: it may never end.
    pub fn end(&mut self) -> io::Result<Ended> {
        if self.is_reaped {
            return self.wait();
        }
        match kill(self.pid, libc::SIGKILL) {
            Ok(()) => self.wait(),
            Err(error) => self.try_wait()?.ok_or_else(|| {
                self.abandon();
                error
            }),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Returns a descriptor of a process (pidfd_open(2)).
///
/// # Errors
/// ESRCH if it does not exist, ENOSYS before Linux 5.3.
pub fn pidfd(pid: libc::pid_t) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Sends a signal to a process, or with a negative number to a process group (kill(2)); signal 0 only checks. The caller
/// must know that the number has not been reused.
///
/// # Errors
/// ESRCH if it does not exist, EPERM if the signal may not be sent.
pub fn kill(pid: libc::pid_t, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: kill(2) takes numbers.
    match unsafe { libc::kill(pid, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns whether no such process exists. A zombie exists.
pub fn is_gone(pid: libc::pid_t) -> bool {
    kill(pid, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}

/// A state change of a child or of a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The process has ended.
    Ended(Ended),
    /// The process or thread has stopped.
    Stopped {
        /// The signal that stopped it.
        signal: libc::c_int,
        /// The event of ptrace(2), or 0.
        event: libc::c_int,
    },
}

impl Status {
    fn from_raw(status: libc::c_int) -> Self {
        if libc::WIFSTOPPED(status) {
            Self::Stopped { signal: libc::WSTOPSIG(status), event: status >> 16 }
        } else if libc::WIFSIGNALED(status) {
            Self::Ended(Ended::Signal(libc::WTERMSIG(status)))
        } else {
            Self::Ended(Ended::Exit(libc::WEXITSTATUS(status)))
        }
    }
}

/// A stop or an end.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// The process or traced thread.
    pub pid: libc::pid_t,
    /// Whether it stopped or ended.
    pub status: Status,
    /// Resources used by its process so far, including the children that it has waited for.
    pub usage: Usage,
}

/// Waits for the next stop or end of a child or of a traced thread (wait4(2) with __WALL). `pid` is -1 for any, and
/// negative for a process group. Returns `None` if `flags` have WNOHANG and nothing has happened.
///
/// # Errors
/// EINTR, and ECHILD if there is no child to wait for.
pub fn wait4(pid: libc::pid_t, flags: libc::c_int) -> io::Result<Option<Wait>> {
    let mut status = 0;
    // SAFETY: all zeros are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes to `status` and `usage`, which are alive.
    match unsafe { libc::wait4(pid, &raw mut status, libc::__WALL | flags, &raw mut usage) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(Wait { pid, status: Status::from_raw(status), usage: Usage::from_raw(&usage) })),
    }
}

/// Returns the child or traced thread that has an event of these kinds (WEXITED, WSTOPPED, WCONTINUED), without consuming
/// it (waitid(2) with WNOWAIT). `None` as the child means any; the result is `None` if `kinds` have WNOHANG and there is no
/// event.
///
/// # Errors
/// As [`wait4`].
pub fn peek(child: Option<libc::pid_t>, kinds: libc::c_int) -> io::Result<Option<libc::pid_t>> {
    let info = event(child, kinds)?;
    // SAFETY: waitid(2) sets the number; 0 means no child.
    Ok(Some(unsafe { info.si_pid() }).filter(|pid| *pid != 0))
}

/// Returns how a child ended, without reaping it; `None` if it has not ended.
///
/// # Errors
/// ECHILD if it was already waited for.
pub fn peek_end(child: libc::pid_t) -> io::Result<Option<Ended>> {
    let info = event(Some(child), libc::WEXITED | libc::WNOHANG)?;
    // SAFETY: waitid(2) sets both, or leaves zeros.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok(match info.si_code {
        _ if pid == 0 => None,
        libc::CLD_EXITED => Some(Ended::Exit(status)),
        _ => Some(Ended::Signal(status)),
    })
}

fn event(child: Option<libc::pid_t>, kinds: libc::c_int) -> io::Result<libc::siginfo_t> {
    let (which, id) = child.map_or((libc::P_ALL, 0), |pid| (libc::P_PID, pid.cast_unsigned()));
    // SAFETY: all zeros are a valid `siginfo_t`, and also the answer for "not yet".
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes to `info`.
    match unsafe { libc::waitid(which, id, &raw mut info, kinds | libc::WNOWAIT | libc::__WALL) } {
        0 => Ok(info),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_ends_as_its_life_did() {
        let ended = |life: fn() -> i32| fork_bound(life).unwrap().wait().unwrap();
        assert_eq!(ended(|| 7), Ended::Exit(7));
        // Panics without a message: another test's thread may hold a lock that printing needs.
        assert_eq!(ended(|| std::panic::resume_unwind(Box::new(()))), Ended::Exit(PANICKED));
        assert_eq!(ended(|| kill(own_pid(), libc::SIGKILL).map_or(1, |()| 0)), Ended::Signal(libc::SIGKILL));
    }

    #[test]
    fn it_is_killed_and_reaped_when_it_is_dropped() {
        let forever = || loop {
            std::thread::park();
        };
        let mut child = fork_bound(forever).unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        assert_eq!(peek(Some(child.pid()), libc::WEXITED | libc::WNOHANG).unwrap(), None);
        assert_eq!(peek_end(child.pid()).unwrap(), None);
        child.kill(libc::SIGKILL);
        assert_eq!(peek(Some(child.pid()), libc::WEXITED).unwrap(), Some(child.pid()));
        assert_eq!(peek_end(child.pid()).unwrap(), Some(Ended::Signal(libc::SIGKILL)));
        assert_eq!(child.end().unwrap(), Ended::Signal(libc::SIGKILL));
        assert!(child.is_reaped() && child.wait().is_err());
        let child = fork_bound(forever).unwrap();
        let pid = child.pid();
        drop(child);
        assert!(peek(Some(pid), libc::WEXITED | libc::WNOHANG).is_err(), "there is no such child");
    }

    #[test]
    fn a_child_that_may_not_be_killed_is_not_waited_for() {
        use crate::seccomp::{Answers, Rules, install};
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let mut parent = fork_bound(|| {
            let Ok(mut child) = fork_bound(|| {
                loop {
                    std::thread::park();
                }
            }) else {
                return 1;
            };
            let allowed = || Answers::all(libc::SECCOMP_RET_ALLOW);
            let mut rules = Rules { long: allowed(), short: allowed() };
            let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
            rules.add(crate::calls::number("kill").unwrap(), refused);
            if rules.filter().is_none_or(|filter| install(&filter).is_err()) {
                return 2;
            }
            let why = child.end().err().and_then(|error| error.raw_os_error());
            drop(child);
            if why == Some(libc::EPERM) { 0 } else { 3 }
        })
        .unwrap();
        let ended = parent.pidfd().unwrap();
        let long = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&long)), Ok(1), "it waits");
        assert_eq!(parent.wait().unwrap(), Ended::Exit(0));
    }

    #[test]
    fn a_stop_is_no_end() {
        let mut child = fork_bound(|| {
            let _ = kill(own_pid(), libc::SIGSTOP);
            3
        })
        .unwrap();
        let stopped = child.next(libc::WUNTRACED).unwrap().unwrap();
        assert_eq!(stopped.status, Status::Stopped { signal: libc::SIGSTOP, event: 0 });
        assert!(!child.is_reaped());
        child.kill(libc::SIGCONT);
        assert_eq!(child.wait().unwrap(), Ended::Exit(3));
    }

    #[test]
    fn a_child_dies_with_its_parent() {
        let shared = crate::shared::Shared::<1>::new().unwrap();
        let mut parent = fork_bound(|| {
            let child = fork_bound(|| {
                loop {
                    std::thread::park();
                }
            })
            .unwrap();
            shared[0].store(child.pid().cast_unsigned().into(), std::sync::atomic::Ordering::Release);
            exit_now(0)
        })
        .unwrap();
        parent.wait().unwrap();
        let pid = shared[0].load(std::sync::atomic::Ordering::Acquire) as libc::pid_t;
        assert!(pid > 0);
        // Its new parent reaps it at any later time, so a zombie counts as ended.
        let has_ended = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .is_none_or(|rest| matches!(rest.trim().chars().next(), None | Some('Z' | 'X')))
        };
        while !has_ended() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn a_program_is_bound_and_ends_when_it_is_dropped() {
        let mut command = Command::new("sleep");
        bind(command.arg("100"), || Ok(()));
        let program = Program(command.spawn().unwrap());
        let pid = program.0.id().cast_signed();
        drop(program);
        assert!(peek(Some(pid), libc::WEXITED | libc::WNOHANG).is_err());
        let mut command = Command::new("true");
        bind(&mut command, || Err(io::ErrorKind::Unsupported.into()));
        assert!(command.spawn().is_err());
    }
}
