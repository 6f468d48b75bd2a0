//! The signals of this process that are forwarded to the command, and those that it inherits.
//!
//! As in system(3), SIGINT and SIGQUIT are left to the command while it runs: the terminal sends them to the process group,
//! and so to the command itself. SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 from another process are forwarded, except those that
//! the command itself sends. A command gets such a signal twice if the sender means the group, as timeout(1) does, since the
//! receiver of a kill(2) cannot tell whom it was meant for. A signal that was ignored when this process began, as by
//! nohup(1), stays ignored for both.

#![allow(unsafe_code)] // Signal handlers.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::time::Duration;

use tollgate_os::signals::{self, Changed, Disposition, Mask, Set};
use tollgate_os::{process, timer::Timer};

const PASSED: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM];

/// Signals that this program changes and restores for the command: Rust ignores SIGPIPE before `main`, this program SIGXFSZ.
const CHANGED: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// The process that signals go to: its pidfd if there is one (else -1), and its number (0 for none).
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// The command has ended, and its descendants are waited for.
static OVER: AtomicBool = AtomicBool::new(false);
/// A signal to end this process that arrived after the command had ended; 0 for none.
static LATE: AtomicI32 = AtomicI32::new(0);
/// A signal asked to end the wait, or the time is up.
static ENOUGH: AtomicBool = AtomicBool::new(false);

/// The last signal that this process received since it began to watch; 0 for none.
static CAME: AtomicI32 = AtomicI32::new(0);

/// Whether each signal of [`CHANGED`] was ignored when this process began, before Rust's runtime changed that.
static IGNORED_AT_START: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The C library calls this before `main`, and before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

extern "C" fn remember() {
    for (signal, was_ignored) in CHANGED.into_iter().zip(&IGNORED_AT_START) {
        was_ignored.store(Disposition::of(signal).is_ignored(), Relaxed);
    }
}

pub(crate) struct Inherited {
    dispositions: Vec<(libc::c_int, Disposition)>,
    mask: Set,
}

impl Inherited {
    pub fn restore(&self) {
        for (signal, disposition) in &self.dispositions {
            let _ = disposition.set(*signal);
        }
        self.mask.block_only();
    }
}

/// Returns the last signal for the command that this process received since the last [`Watch`] began.
pub(crate) fn came() -> Option<libc::c_int> {
    Some(CAME.load(Relaxed)).filter(|signal| *signal != 0)
}

/// Forwards signals while it lives. There may be one at a time in a process.
pub(crate) struct Watch {
    before: Vec<(libc::c_int, Disposition)>,
}

impl Watch {
    /// Begins to watch. Until there is a command, a signal ends this process as usual.
    pub fn begin() -> Self {
        // From here to the end, exceeding the file size limit is an ordinary error: this process ends as the command did.
        signals::ignore(libc::SIGXFSZ);
        DESCRIPTOR.store(-1, Relaxed);
        COMMAND.store(0, Relaxed);
        OVER.store(false, Relaxed);
        LATE.store(0, Relaxed);
        CAME.store(0, Relaxed);
        ENOUGH.store(false, Relaxed);
        let mut before = Vec::new();
        for signal in PASSED {
            let was = Disposition::of(signal);
            if !was.is_ignored() {
                before.push((signal, was));
                let _ = passing(libc::SA_RESTART).set(signal);
            }
        }
        // Without SA_NOCLDSTOP each stop of the command signals. With SIG_IGN the kernel would reap it before wait4(2).
        let only_ends = Disposition::default_with(libc::SA_NOCLDSTOP).set(libc::SIGCHLD);
        before.extend(only_ends.ok().map(|was| (libc::SIGCHLD, was)));
        Self { before }
    }

    pub fn inherited(&self) -> Inherited {
        let changed = CHANGED.into_iter().zip(&IGNORED_AT_START).map(|(signal, was_ignored)| {
            let ignored = was_ignored.load(Relaxed);
            (signal, if ignored { Disposition::ignored() } else { Disposition::default_with(0) })
        });
        let before = self.before.iter().map(|(signal, before)| (*signal, before.inherited()));
        Inherited { dispositions: before.chain(changed).collect(), mask: Set::blocked() }
    }

    pub fn pass_to(&self, pid: libc::pid_t, pidfd: Option<BorrowedFd<'_>>) {
        DESCRIPTOR.store(pidfd.map_or(-1, |pidfd| pidfd.as_raw_fd()), Relaxed);
        COMMAND.store(pid, Relaxed);
    }

    /// Returns a signal to this process that arrived too late for the command. This process then ends by it.
    pub fn late(&self) -> Option<libc::c_int> {
        Some(LATE.load(Relaxed)).filter(|signal| *signal != 0)
    }

    /// Stops forwarding when the command has ended. A signal or the timeout now ends the wait for descendants, even in wait4(2).
    pub fn command_is_over(&self, linger: Duration) -> Alarm {
        OVER.store(true, Relaxed);
        DESCRIPTOR.store(-1, Relaxed);
        for (signal, _) in &self.before {
            if *signal != libc::SIGCHLD {
                let _ = passing(0).set(*signal);
            }
        }
        Alarm::set(linger)
    }

    pub fn enough(&self) -> bool {
        ENOUGH.load(Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            let _ = before.set(*signal);
        }
    }
}

fn passing(flags: libc::c_int) -> Disposition {
    // SAFETY: the function preserves errno, and makes only calls that signal-safety(7) allows.
    unsafe { Disposition::handler(pass, flags) }
}

/// Forwards a signal. Makes only calls that signal-safety(7) allows.
extern "C" fn pass(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    CAME.store(signal, Relaxed);
    if OVER.load(Relaxed) {
        LATE.store(signal, Relaxed);
        return ENOUGH.store(true, Relaxed);
    }
    let command = COMMAND.load(Relaxed);
    // SAFETY: system calls on valid arguments; the kernel filled `info`; errno is restored.
    unsafe {
        let errno = *libc::__errno_location();
        if command == 0 {
            signals::default(&[signal]);
            signals::raise(signal);
        } else {
            let is_left =
                matches!(signal, libc::SIGINT | libc::SIGQUIT) || (*info).si_code == libc::SI_KERNEL;
            if !is_left && (*info).si_pid() != command {
                send(command, DESCRIPTOR.load(Relaxed), signal);
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// Sends a signal to a process: by its pidfd if there is one, else by its number. Makes only calls that signal-safety(7) allows.
fn send(pid: libc::pid_t, pidfd: RawFd, signal: libc::c_int) {
    if pidfd >= 0 {
        let none = ptr::null::<libc::siginfo_t>();
        // SAFETY: a system call on numbers.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, none, 0) };
    } else {
        let _ = process::kill(pid, signal);
    }
}

/// Interrupts waiting after a time, repeatedly until it is dropped, since a single signal could arrive just before the wait.
pub(crate) struct Alarm {
    // Fields drop in this order.
    _timer: Option<Timer>,
    _open: Mask,
    _changed: Option<Changed>,
}

impl Alarm {
    fn set(after: Duration) -> Self {
        const AGAIN: Duration = Duration::from_millis(5);
        // SAFETY: the function stores a flag.
        let changed = unsafe { Disposition::handler(enough, 0) }.set_for_now(libc::SIGALRM).ok();
        let open = Set::of(&[libc::SIGALRM]).unblock_for_now();
        let timer = Timer::new(libc::SIGALRM).and_then(|timer| timer.set(after, AGAIN).map(|()| timer)).ok();
        if timer.is_none() {
            // Without a timer nothing would end the wait.
            ENOUGH.store(true, Relaxed);
        }
        Self { _timer: timer, _open: open, _changed: changed }
    }
}

extern "C" fn enough(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    ENOUGH.store(true, Relaxed);
}
