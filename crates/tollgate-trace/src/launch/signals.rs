//! The signals of this process that are forwarded to the command, and those that it inherits.
//!
//! A signal to the process group (the terminal's Ctrl-C, `kill -- -PGID`, timeout(1)) reaches the command by itself and is not
//! sent on. A signal to this process alone (`kill PID`, a supervisor) is meant for the command and goes to it.
//! [`super::observer`] distinguishes them. A signal that was ignored when this process began, as by nohup(1), stays
//! ignored for both.
//!
//! A signal that the command itself sends here, as by `kill $PPID`, is meant for this process: it ends the command, and then
//! this process by the same signal. A command that stops stops this process too, so that a shell sees a stopped job.

#![allow(unsafe_code)] // sigaction(2), and handlers.

use std::cell::{Cell, RefCell};
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::observer::{self, Observer, Record};
use crate::ptrace::sys::Usage;

/// The forwarded signals.
pub(super) const PASSED: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM];
/// Signals that this program changes for itself and restores for the command: Rust ignores SIGPIPE before `main`, and this program
/// SIGXFSZ.
const CHANGED: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// The process that signals go to: its descriptor where there is one, else its number; 0 for none.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// The pipe of signals to the observer; -1 where there is no observer.
static RECORDS: AtomicI32 = AtomicI32::new(-1);
/// The command has ended, and its descendants are waited for.
static OVER: AtomicBool = AtomicBool::new(false);
/// A signal that came when the command had ended, and asks this process to end; 0 for none.
static LATE: AtomicI32 = AtomicI32::new(0);
/// A signal asked to end the wait, or the time is up.
static ENOUGH: AtomicBool = AtomicBool::new(false);

/// How signals of [`CHANGED`] were handled when this process began, before Rust's own start changed it.
static AT_START: [AtomicUsize; 2] = [AtomicUsize::new(libc::SIG_DFL), AtomicUsize::new(libc::SIG_DFL)];

/// Called by the C library before `main`, and before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

extern "C" fn remember() {
    for (signal, kept) in CHANGED.into_iter().zip(&AT_START) {
        // SAFETY: a question to the kernel; zeroes are a valid action.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            if libc::sigaction(signal, ptr::null(), &raw mut action) == 0 {
                kept.store(action.sa_sigaction, Relaxed);
            }
        }
    }
}

/// The dispositions and the mask that the command is to have.
pub(crate) struct Inherited {
    actions: Vec<(libc::c_int, libc::sigaction)>,
    mask: libc::sigset_t,
}

impl Inherited {
    /// Sets them, in a copy of this process.
    ///
    /// # Safety
    /// In a fresh copy of a process only.
    pub unsafe fn restore(&self) {
        // SAFETY: these are actions and a mask that the kernel gave.
        unsafe {
            for (signal, action) in &self.actions {
                libc::sigaction(*signal, action, ptr::null_mut());
            }
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.mask, ptr::null_mut());
        }
    }
}

/// As long as it lives, signals are passed on. One at a time in a process.
pub(crate) struct Watch {
    before: Vec<(libc::c_int, libc::sigaction)>,
    observer: RefCell<Option<Observer>>,
    /// The signal by which the command asked this process to end.
    asked: Cell<Option<libc::c_int>>,
    /// The times of the observer, once it has ended.
    used_by_observer: Cell<Usage>,
}

impl Watch {
    /// Begins to watch. Until there is a command, a signal ends this process as it would without.
    pub fn begin() -> Self {
        // From here on, and when the command has ended, a file that may not grow is an error like others: this process
        // ends as the command did.
        set(libc::SIGXFSZ, libc::SIG_IGN, 0);
        DESCRIPTOR.store(-1, Relaxed);
        COMMAND.store(0, Relaxed);
        RECORDS.store(-1, Relaxed);
        OVER.store(false, Relaxed);
        LATE.store(0, Relaxed);
        ENOUGH.store(false, Relaxed);
        let mut before = Vec::new();
        for signal in PASSED {
            let was = action(signal, None);
            if was.sa_sigaction != libc::SIG_IGN {
                before.push((signal, was));
                set(signal, pass as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART);
            }
        }
        // Without SA_NOCLDSTOP each stop of the command sends a signal. With SIG_IGN the kernel would reap the
        // command itself, and wait4(2) would not return it.
        before.push((libc::SIGCHLD, action(libc::SIGCHLD, None)));
        set(libc::SIGCHLD, libc::SIG_DFL, libc::SA_NOCLDSTOP);
        Self {
            before,
            observer: RefCell::new(None),
            asked: Cell::new(None),
            used_by_observer: Cell::new(Usage::default()),
        }
    }

    /// The signal actions that the command inherits.
    pub fn inherited(&self) -> Inherited {
        let mut actions = self.before.clone();
        for (signal, kept) in CHANGED.into_iter().zip(&AT_START) {
            let mut was = action(signal, None);
            was.sa_sigaction = kept.load(Relaxed);
            actions.push((signal, was));
        }
        for (_, action) in &mut actions {
            // A handler of ours does not exist in another program.
            if action.sa_sigaction != libc::SIG_IGN {
                action.sa_sigaction = libc::SIG_DFL;
                action.sa_flags = 0;
            }
        }
        // SAFETY: a question to the kernel; zeroes are a valid set.
        let mask = unsafe {
            let mut mask: libc::sigset_t = mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), &raw mut mask);
            mask
        };
        Inherited { actions, mask }
    }

    /// From now on signals go to this process. `stops`: while it is stopped, /proc says so.
    pub fn pass_to(&self, pid: libc::pid_t, pidfd: Option<BorrowedFd<'_>>, stops: bool) {
        DESCRIPTOR.store(pidfd.map_or(-1, |pidfd| pidfd.as_raw_fd()), Relaxed);
        // Without a observer only the terminal's signals are known to reach the group.
        if let Ok(observer) = Observer::start(pid, pidfd, stops) {
            RECORDS.store(observer.records(), Relaxed);
            *self.observer.borrow_mut() = Some(observer);
        }
        COMMAND.store(pid, Relaxed);
    }

    /// Ends the observer: the command has ended.
    pub fn dismiss_observer(&self) {
        COMMAND.store(0, Relaxed);
        RECORDS.store(-1, Relaxed);
        if let Some(observer) = self.observer.take() {
            self.asked.set(self.asked.get().or(observer.asked_by_command()));
            let (used, late) = observer.end();
            self.used_by_observer.set(used);
            if let Some(signal) = late {
                LATE.store(signal, Relaxed);
            }
        }
    }

    /// The signal by which the command asked this process to end, as by `kill $PPID`. It has been killed then.
    pub fn asked_by_command(&self) -> Option<libc::c_int> {
        self.asked.get().or_else(|| self.observer.borrow().as_ref().and_then(Observer::asked_by_command))
    }

    /// A signal that was sent to this process and came too late for the command. This process ends by it.
    pub fn late(&self) -> Option<libc::c_int> {
        Some(LATE.load(Relaxed)).filter(|signal| *signal != 0)
    }

    /// The times of the observer, where it has been waited for.
    pub fn used_by_observer(&self) -> Usage {
        self.used_by_observer.get()
    }

    /// The command has stopped: this process stops too, until it is continued, and then continues the command.
    ///
    /// `goes_on` looks whether the command was continued meanwhile.
    pub fn stop_with(&self, pid: libc::pid_t, goes_on: impl Fn() -> bool) {
        // A stop signal that went to the whole group is delivered here on the way back from this call.
        await_senders();
        if goes_on() {
            return;
        }
        if let Some(observer) = self.observer.borrow().as_ref() {
            observer.say_that_we_stop();
        }
        // SAFETY: SIGSTOP stops this process here, whatever its group is.
        unsafe { libc::raise(libc::SIGSTOP) };
        await_senders();
        if !goes_on() {
            observer::send(pid, DESCRIPTOR.load(Relaxed), libc::SIGCONT);
        }
    }

    /// The command has ended: signals are not forwarded any more, and one that asks to end ends the wait for its descendants. So does
    /// the time. The wait4(2) that is going on then is interrupted.
    pub fn command_is_over(&self, linger: Duration) -> Alarm {
        OVER.store(true, Relaxed);
        self.dismiss_observer();
        DESCRIPTOR.store(-1, Relaxed);
        for (signal, _) in &self.before {
            if *signal != libc::SIGCHLD {
                set(*signal, pass as *const () as usize, libc::SA_SIGINFO);
            }
        }
        Alarm::set(linger)
    }

    /// Whether the wait for the command's descendants is over.
    pub fn enough(&self) -> bool {
        ENOUGH.load(Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            action(*signal, Some(before));
        }
        self.dismiss_observer();
    }
}

/// Returns when no process is in the middle of a kill(2): setpgid(2) takes the lock under which the kernel goes through a
/// group. This process stays in its group.
fn await_senders() {
    // SAFETY: system calls that change nothing: the group is the one that this process is in.
    unsafe { libc::setpgid(0, libc::getpgrp()) };
}

/// Passes a signal on. Only what signal-safety(7) allows.
extern "C" fn pass(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if OVER.load(Relaxed) {
        LATE.store(signal, Relaxed);
        return ENOUGH.store(true, Relaxed);
    }
    let command = COMMAND.load(Relaxed);
    // SAFETY: system calls on valid arguments; the kernel filled `info`; errno is put back.
    unsafe {
        let errno = *libc::__errno_location();
        let records = RECORDS.load(Relaxed);
        if command == 0 {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        } else {
            await_senders();
            let is_sent = records >= 0 && Record::of(signal, info).send_to(records);
            if !is_sent && (*info).si_code != libc::SI_KERNEL && (*info).si_pid() != command {
                observer::send(command, DESCRIPTOR.load(Relaxed), signal);
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// Interrupts waiting after a time, again and again until it is dropped, so that it cannot come just before the wait.
pub(crate) struct Alarm {
    before: libc::sigaction,
    mask: libc::sigset_t,
    timer: Option<libc::timer_t>,
}

impl Alarm {
    fn set(after: Duration) -> Self {
        let before = action(libc::SIGALRM, None);
        set(libc::SIGALRM, enough as *const () as usize, 0);
        // SAFETY: zeroes are a valid set, and the kernel writes to the other one.
        let mask = unsafe {
            let (mut own, mut mask): (libc::sigset_t, libc::sigset_t) = (mem::zeroed(), mem::zeroed());
            libc::sigaddset(&raw mut own, libc::SIGALRM);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const own, &raw mut mask);
            mask
        };
        let mut timer = ptr::null_mut();
        // SAFETY: zeroes are a valid event and time; the timer is kept until it is deleted.
        let made = unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGALRM;
            event.sigev_notify_thread_id = libc::syscall(libc::SYS_gettid) as libc::pid_t;
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) == 0
        };
        let after = after.max(Duration::from_nanos(1));
        let again = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let value = libc::timespec {
            tv_sec: libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: after.subsec_nanos().into(),
        };
        let times = libc::itimerspec { it_interval: again, it_value: value };
        // SAFETY: a timer that was just made, and valid times.
        if !made || unsafe { libc::timer_settime(timer, 0, &raw const times, ptr::null_mut()) } != 0 {
            // Without a timer nothing would end the waiting.
            ENOUGH.store(true, Relaxed);
        }
        Self { before, mask, timer: made.then_some(timer) }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            // SAFETY: made by `set` and deleted once.
            unsafe { libc::timer_delete(timer) };
        }
        // SAFETY: a mask that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, ptr::null_mut()) };
        action(libc::SIGALRM, Some(&self.before));
    }
}

extern "C" fn enough(_: libc::c_int) {
    ENOUGH.store(true, Relaxed);
}

/// The action of a signal, and its replacement.
fn action(signal: libc::c_int, new: Option<&libc::sigaction>) -> libc::sigaction {
    // SAFETY: zeroes are a valid action; `new` came from the kernel.
    unsafe {
        let mut old: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, new.map_or(ptr::null(), ptr::from_ref), &raw mut old);
        old
    }
}

fn set(signal: libc::c_int, handler: usize, flags: libc::c_int) {
    // SAFETY: zeroes are a valid action; the handler is a function of this file that fits its flags, or a constant.
    unsafe {
        let mut new: libc::sigaction = mem::zeroed();
        new.sa_sigaction = handler;
        new.sa_flags = flags;
        libc::sigaction(signal, &raw const new, ptr::null_mut());
    }
}
