//! Starting a program so that it stands still before it begins: fork(2), ptrace(2) and execve(2), with nothing allocated
//! between fork and execve.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

unsafe extern "C" {
    /// environ(7).
    static environ: *const *const c_char;
}

/// Seconds that a loader may take to come to the program's entry point. It takes milliseconds.
const LIMIT: libc::c_uint = 10;

/// The call that failed in a child.
const TRACE: i32 = 1;
const EXECUTE: i32 = 2;

/// A program, with all that a start of it needs.
pub(super) struct Program {
    path: CString,
    argument: CString,
    /// Its standard input and output.
    nowhere: OwnedFd,
    note: Note,
}

impl Program {
    /// A program at a path, started with `argument` as its only one.
    ///
    /// # Errors
    /// A path with a NUL, and where neither memory nor a descriptor is to be had.
    pub fn new(path: &Path, argument: &Path) -> io::Result<Self> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
        Ok(Self { path: text(path)?, argument: text(argument)?, nowhere: nowhere()?, note: Note::new()? })
    }

    /// Starts it: its process, which is traced and stops when it is executed. It is killed when this process ends, and by SIGALRM after [`LIMIT`] seconds.
    ///
    /// # Errors
    /// Those of fork(2).
    pub fn start(&self) -> io::Result<libc::pid_t> {
        self.note.clear();
        let argv = [self.argument.as_ptr(), ptr::null()];
        // SAFETY: getpid(2) has no preconditions.
        let parent = unsafe { libc::getpid() };
        // SAFETY: the copy calls only what is safe after fork (signal-safety(7)), on memory made before, until it is
        // another program or ends.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: as above; this is the copy.
            0 => unsafe { self.become_it(parent, &argv) },
            pid => Ok(pid),
        }
    }

    /// # Safety
    /// In a fresh copy of a process only.
    unsafe fn become_it(&self, parent: libc::pid_t, argv: &[*const c_char; 2]) -> ! {
        // SAFETY: all of these are system calls on valid arguments, or end this process.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
            if libc::getppid() != parent {
                libc::_exit(1);
            }
            // A session of its own: no terminal, no group that Ctrl-C reaches. This process ends it.
            libc::setsid();
            libc::alarm(LIMIT);
            libc::signal(libc::SIGALRM, libc::SIG_DFL);
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            for stream in 0..3 {
                libc::dup2(self.nowhere.as_raw_fd(), stream);
            }
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0 {
                self.note.write(TRACE);
            } else {
                libc::execve(self.path.as_ptr(), argv.as_ptr(), environ);
                self.note.write(EXECUTE);
            }
            libc::_exit(1)
        }
    }

    /// The call that failed in a start that has ended, and its error.
    pub fn refused(&self) -> Option<(&'static str, io::Error)> {
        let error = io::Error::from_raw_os_error(self.note.error().load(Relaxed));
        match self.note.stage().load(Relaxed) {
            TRACE => Some(("ptrace", error)),
            EXECUTE => Some(("execve", error)),
            _ => None,
        }
    }
}

/// `/dev/null`, or where there is none an empty file in memory.
fn nowhere() -> io::Result<OwnedFd> {
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        return Ok(null.into());
    }
    // SAFETY: the name ends in NUL.
    let memory = unsafe { libc::syscall(libc::SYS_memfd_create, c"nowhere".as_ptr(), libc::MFD_CLOEXEC) };
    match libc::c_int::try_from(memory) {
        // SAFETY: a new descriptor that nothing else owns.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Two words of memory that parent and child share: what failed, and the error.
struct Note(NonNull<[AtomicI32; 2]>);

impl Note {
    fn new() -> io::Result<Self> {
        let size = size_of::<[AtomicI32; 2]>();
        // SAFETY: new memory, where the kernel likes it.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(memory.cast()) {
            Some(words) if memory != libc::MAP_FAILED => Ok(Self(words)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn stage(&self) -> &AtomicI32 {
        // SAFETY: mapped as long as this lives, zeroed, and large enough.
        unsafe { &self.0.as_ref()[0] }
    }

    fn error(&self) -> &AtomicI32 {
        // SAFETY: as above.
        unsafe { &self.0.as_ref()[1] }
    }

    fn clear(&self) {
        self.stage().store(0, Relaxed);
    }

    /// Safe after fork.
    fn write(&self, stage: i32) {
        // SAFETY: the address of this thread's errno.
        self.error().store(unsafe { *libc::__errno_location() }, Relaxed);
        self.stage().store(stage, Relaxed);
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and no reference to it is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<[AtomicI32; 2]>()) };
    }
}
