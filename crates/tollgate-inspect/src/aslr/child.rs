//! Starts a program that stops before it begins: fork(2), ptrace(2) and execve(2), without allocating between fork and execve.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::os::fd::{AsRawFd, OwnedFd};
use std::{fs::File, io, os::unix::ffi::OsStrExt, path::Path, ptr, sync::atomic::Ordering::Relaxed};

use tollgate_os::process::{self, Child};
use tollgate_os::shared::Shared;
use tollgate_os::{memfd, signals};

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Seconds for a loader to reach the program's entry point. It takes milliseconds.
const LIMIT: libc::c_uint = 10;

const TRACE: u64 = 1;
const EXECUTE: u64 = 2;

pub(super) fn personality() -> Option<u32> {
    /// "Do not set": linux/personality.h.
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: queries, and changes nothing.
    u32::try_from(unsafe { libc::personality(ASK) }).ok()
}

pub(super) struct Program {
    path: CString,
    argument: CString,
    nowhere: OwnedFd,
    note: Shared<2>,
}

impl Program {
    /// Prepares a program with `argument` as its only argument. Fails if a path contains NUL, or without memory or descriptors.
    pub fn new(path: &Path, argument: &Path) -> io::Result<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
        Ok(Self { path: text(path)?, argument: text(argument)?, nowhere: nowhere()?, note: Shared::new()? })
    }

    /// Starts the program, traced and stopped at execve(2). It is killed when this process ends, or by SIGALRM after [`LIMIT`] s.
    pub fn start(&self) -> io::Result<Child> {
        self.note[0].store(0, Relaxed);
        let argv = [self.argument.as_ptr(), ptr::null()];
        // SAFETY: the closure runs in a fresh copy of this process.
        process::fork_bound(|| unsafe { self.become_it(&argv) })
    }

    /// # Safety
    /// Only in a fresh copy of a process.
    unsafe fn become_it(&self, argv: &[*const c_char; 2]) -> i32 {
        // SAFETY: all of these are system calls on valid arguments.
        unsafe {
            // A session of its own has no terminal, and Ctrl-C does not reach it. This process ends it.
            let _ = rustix::process::setsid();
            libc::alarm(LIMIT);
            signals::default(&[libc::SIGALRM, libc::SIGPIPE, libc::SIGXFSZ]);
            for stream in 0..3 {
                libc::dup2(self.nowhere.as_raw_fd(), stream);
            }
            let failed = if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 {
                libc::execve(self.path.as_ptr(), argv.as_ptr(), environ);
                EXECUTE
            } else {
                TRACE
            };
            let error = *libc::__errno_location();
            self.note[1].store(error.cast_unsigned().into(), Relaxed);
            self.note[0].store(failed, Relaxed);
        }
        1
    }

    pub fn refused(&self) -> Option<(&'static str, io::Error)> {
        let error = io::Error::from_raw_os_error(self.note[1].load(Relaxed) as i32);
        match self.note[0].load(Relaxed) {
            TRACE => Some(("ptrace", error)),
            EXECUTE => Some(("execve", error)),
            _ => None,
        }
    }
}

/// Opens `/dev/null`, or an empty file in memory if there is none.
fn nowhere() -> io::Result<OwnedFd> {
    let null = File::options().read(true).write(true).open("/dev/null");
    Ok(null.or_else(|_| memfd::create("nowhere"))?.into())
}
