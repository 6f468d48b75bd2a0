//! The command's process: a fork of this one that waits in read(2) until it is released, and then calls execve(2).
//!
//! The child makes one traced call that is not the command's: it blocks in read(2) until a tracer is attached. The counts
//! begin with the execve(2) that follows.

#![allow(unsafe_code)] // System calls of the child until execve(2).

use std::ffi::{CString, c_char};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::{io, ptr, sync::atomic::Ordering::Relaxed};

use tollgate_os::{privileges, process, rusage::Usage, shared::Shared};

use tollgate_os::seccomp::Filter;

use crate::{launch::path::Program, launch::signals::Inherited, launch::streams, request::Request};

unsafe extern "C" {
    /// environ(7).
    static environ: *const *const c_char;
}

/// A process that waits to be released. Dropping this kills a process that was not released.
pub(crate) struct Child {
    pid: libc::pid_t,
    pidfd: Option<OwnedFd>,
    /// `Some` while it waits.
    waiting: Option<(process::Child, OwnedFd)>,
    note: Note,
}

/// The instructions for the child, all prepared before the fork.
struct Orders<'a> {
    gate: (OwnedFd, OwnedFd),
    inherited: &'a Inherited,
    what: What<'a>,
}

enum What<'a> {
    Execute {
        path: &'a CString,
        arguments: Vec<*const c_char>,
        /// `None` for that of this process.
        environment: Option<Vec<*const c_char>>,
        filter: Option<libc::sock_fprog>,
        /// Whether to gain no privileges: a tracer with file capabilities would otherwise follow it to another user.
        stays_the_user: bool,
        /// The controlling terminal of its own session, and its standard streams.
        terminal: Option<RawFd>,
    },
    /// The child stores the function's result, and exits.
    Call(fn() -> u64),
}

impl Child {
    pub fn start(
        program: &Program,
        request: &Request,
        filter: Option<&mut Filter>,
        inherited: &Inherited,
    ) -> io::Result<Self> {
        let mut arguments: Vec<_> = program.arguments.iter().map(|argument| argument.as_ptr()).collect();
        arguments.push(ptr::null());
        let environment = program
            .environment
            .as_ref()
            .map(|lines| lines.iter().map(|line| line.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>());
        let filter = filter.map(|filter| libc::sock_fprog {
            len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
            filter: filter.as_mut_ptr(),
        });
        Self::fork(
            inherited,
            What::Execute {
                path: &program.path,
                arguments,
                environment,
                filter,
                stays_the_user: privileges::are_of_file(),
                terminal: request.terminal.as_deref().map(AsRawFd::as_raw_fd),
            },
        )
    }

    /// Starts a process that only runs a function, which may neither allocate nor take a lock.
    pub fn start_function(function: fn() -> u64, inherited: &Inherited) -> io::Result<Self> {
        Self::fork(inherited, What::Call(function))
    }

    fn fork(inherited: &Inherited, what: What) -> io::Result<Self> {
        let note = Note(Shared::new()?);
        let orders =
            Orders { gate: rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?, inherited, what };
        // SAFETY: the child makes only calls that are safe after fork (signal-safety(7)), on memory prepared before.
        let child = process::fork(|| unsafe { orders.carry_out(&note) })?;
        let (pid, pidfd) = (child.pid(), child.pidfd().ok());
        Ok(Self { pid, pidfd, waiting: Some((child, orders.gate.1)), note })
    }

    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    pub fn release(&mut self) -> io::Result<()> {
        let Some((child, gate)) = self.waiting.take() else { return Ok(()) };
        // From here on its end is reaped with those of its descendants.
        child.leave();
        Ok(rustix::io::write(&gate, &[1]).map(drop)?)
    }

    /// Returns why exec failed; `None` if it succeeded, or has not happened yet.
    pub fn failed(&self) -> Option<io::Error> {
        self.note.error(EXECUTION)
    }

    /// Returns what the child used before exec: its peak memory in KiB, and its page faults. The kernel counts both as the
    /// command's (`exec_mmap` of fs/exec.c keeps the peak). Zeroes if it did not get that far.
    pub fn used_before(&self) -> (u64, u64) {
        (self.note.0[PEAK].load(Relaxed), self.note.0[FAULTS].load(Relaxed))
    }

    pub fn result(&self) -> u64 {
        self.note.0[RESULT].load(Relaxed)
    }

    /// Returns whether it had to set `no_new_privs` to install the filter, so that setuid programs gain no privileges.
    pub fn gave_up_privileges(&self) -> bool {
        self.note.0[GAVE_UP_PRIVILEGES].load(Relaxed) != 0
    }

    /// Returns the error of installing the filter, if any; valid once it is about to exec.
    pub fn filtered(&self) -> io::Result<()> {
        self.note.error(FILTER).map_or(Ok(()), Err)
    }
}

impl Orders<'_> {
    /// # Safety
    /// Only in a freshly forked child.
    unsafe fn carry_out(&self, note: &Note) -> i32 {
        /// The exit status of a shell whose command cannot be started.
        const NOT_STARTED: i32 = 127;
        self.inherited.restore();
        // SAFETY: all of these are system calls on valid arguments.
        unsafe {
            // If this process ends before it releases the child, the child reads the end of the pipe.
            libc::close(self.gate.1.as_raw_fd());
            let mut byte = 0u8;
            if libc::read(self.gate.0.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
                return NOT_STARTED;
            }
            match &self.what {
                What::Call(function) => {
                    note.used();
                    note.0[RESULT].store(function(), Relaxed);
                    0
                }
                What::Execute { path, arguments, environment, filter, stays_the_user, terminal } => {
                    if *stays_the_user {
                        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                    }
                    if let Some(filter) = filter {
                        install(filter, note);
                    }
                    match terminal {
                        None => streams::close_again(),
                        Some(terminal) if streams::become_terminal(*terminal) => {}
                        Some(_) => {
                            note.write(EXECUTION);
                            return NOT_STARTED;
                        }
                    }
                    let environment = environment.as_ref().map_or(environ, |lines| lines.as_ptr());
                    note.used();
                    libc::execve(path.as_ptr(), arguments.as_ptr(), environment);
                    note.write(EXECUTION);
                    NOT_STARTED
                }
            }
        }
    }
}

/// Installs a filter. Sets `no_new_privs` only if that is necessary.
///
/// # Safety
/// Only in a freshly forked child.
unsafe fn install(filter: &libc::sock_fprog, note: &Note) {
    // SAFETY: the filter lives as long as the child.
    unsafe {
        let set = || libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const *filter);
        if set() == 0 {
            return;
        }
        note.0[GAVE_UP_PRIVILEGES].store(1, Relaxed);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if set() != 0 {
            note.write(FILTER);
        }
    }
}

const EXECUTION: usize = 0;
const FILTER: usize = 1;
const RESULT: usize = 2;
const GAVE_UP_PRIVILEGES: usize = 3;
const PEAK: usize = 4;
const FAULTS: usize = 5;

/// The errors of the child, and its result, in memory that both processes share.
struct Note(Shared<6>);

impl Note {
    fn write(&self, at: usize) {
        // SAFETY: errno belongs to this thread.
        self.0[at].store(unsafe { *libc::__errno_location() }.cast_unsigned().into(), Relaxed);
    }

    fn used(&self) {
        let used = Usage::of_process();
        self.0[PEAK].store(used.maxrss_kib, Relaxed);
        self.0[FAULTS].store(used.faults(), Relaxed);
    }

    fn error(&self, at: usize) -> Option<io::Error> {
        let error = self.0[at].load(Relaxed) as libc::c_int;
        (error != 0).then(|| io::Error::from_raw_os_error(error))
    }
}
