//! A second process that says whether a signal reached the command already.
//!
//! A signal that is sent to a process group reaches the command as well as this process, and is not to be sent on: the
//! command would get it twice. A signal that is sent to this process alone is the command's and is sent on. kill(2) does
//! not distinguish them: `si_code` is `SI_USER` in both. So an observer is in the group of both: a copy of this
//! process that keeps every signal blocked and reads them from signalfd(2). A signal that the observer has as well, from the
//! same sender, went to the group.
//!
//! When the observer looks, a kill(2) on the group has come to its end. The kernel goes through a group under
//! `tasklist_lock` (`kill_something_info` of kernel/signal.c), and the handler of this process calls setpgid(2), which takes
//! that lock for writing, before it asks the observer. timeout(1) sends a signal to its child and then to its group, and
//! systemd sends one to each process of a control group (systemd.kill(5)): the observer waits a little for the second one.
//!
//! The observer also continues this process where that has stopped along with the command, and the command goes on
//! or ends.

#![allow(unsafe_code)] // The copy's calls.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::{ffi::CString, io, mem, ptr, sync::atomic::Ordering::Relaxed};

use tollgate_os::process::{self, Child};
use tollgate_os::{rusage::Usage, shared::Shared, signals::Set};

use crate::clock;

pub(super) const PASSED: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM];
/// So long is waited for a signal's second copy, in nanoseconds: a sender may be switched out between the two.
const PATIENCE: u64 = 100_000_000;
/// The same of a sender within this process's own group, as timeout(1) is, which sends to that group next.
const PATIENCE_WITH_OUR_GROUP: u64 = 500_000_000;
/// Two copies at most so many nanoseconds apart may be of one kill(2).
const MOST_APART: u64 = 250_000_000;
/// How often a sender, or a command that has stopped, is looked at, in milliseconds.
const LOOK: libc::c_int = 2;
/// A record that says: this process is about to stop, because the command has.
const STOPS: libc::c_int = 0;

/// The message of a handler to the observer. Less than PIPE_BUF, so that it is written whole.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct HandlerMessage {
    signal: libc::c_int,
    code: libc::c_int,
    sender: libc::pid_t,
    at_ns: u64,
}

impl HandlerMessage {
    /// A signal that this process has just got.
    ///
    /// # Safety
    /// `info` is the argument of a handler.
    pub unsafe fn new(signal: libc::c_int, info: *const libc::siginfo_t) -> Self {
        // SAFETY: the kernel made it. Of a signal of the kernel's, the sender's number is 0.
        let (code, sender) = unsafe { ((*info).si_code, (*info).si_pid()) };
        Self { signal, code, sender, at_ns: clock::now() }
    }

    /// Writes it to the observer. Whether that could be done.
    pub fn send_to(&self, records: RawFd) -> bool {
        // SAFETY: a record of this process, whole.
        let written = unsafe { libc::write(records, ptr::from_ref(self).cast(), size_of::<Self>()) };
        written == size_of::<Self>() as isize
    }
}

/// The observer. It ends when this is dropped, and with this process.
pub(super) struct Observer {
    process: Child,
    records: OwnedFd,
    answers: Shared<2>,
}

/// Among the answers: the signal by which the command asked this process to end.
const ASKED: usize = 0;
/// The last signal that was meant for the command and came too late for it.
const LATE: usize = 1;

struct Scene<'a> {
    signals: RawFd,
    records: RawFd,
    command: libc::pid_t,
    pidfd: RawFd,
    above: libc::pid_t,
    /// `/proc/PID/stat` of the command. None where /proc has other numbers, or the state there is that of a traced process.
    state: Option<&'a CString>,
    answers: &'a Shared<2>,
    seen: [(libc::pid_t, u64); PASSED.len()],
}

impl Observer {
    /// Starts it for a command. `stops`: this process stops with the command, and /proc shows when that goes on.
    pub fn start(command: libc::pid_t, pidfd: Option<BorrowedFd<'_>>, stops: bool) -> io::Result<Self> {
        let (reader, records) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let nonblocking = rustix::fs::fcntl_getfl(&records)? | rustix::fs::OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&records, nonblocking)?;
        let answers = Shared::new()?;
        let state = (stops && tollgate_os::children::proc_is_ours())
            .then(|| CString::new(format!("/proc/{command}/stat")).ok())
            .flatten();
        let above = process::own_pid();
        // A copy is made with every signal blocked, so that none ends it before it reads them.
        let _mask = Set::all().block_only_for_now();
        let process = process::fork_bound(|| {
            // SAFETY: the descriptor is this copy's own.
            unsafe { libc::close(records.as_raw_fd()) };
            // This process's streams are not held open by its observer.
            for stream in 0..3 {
                // SAFETY: as above; nothing of the copy uses the stream.
                unsafe { libc::close(stream) };
            }
            let Ok(signals) = Set::of(&PASSED).descriptor() else { return 1 };
            let scene = Scene {
                signals: signals.as_raw_fd(),
                records: reader.as_raw_fd(),
                command,
                pidfd: pidfd.map_or(-1, |pidfd| pidfd.as_raw_fd()),
                above,
                state: state.as_ref(),
                answers: &answers,
                seen: [(0, 0); PASSED.len()],
            };
            scene.watch()
        })?;
        Ok(Self { process, records, answers })
    }

    /// Where records are written to.
    pub fn records(&self) -> RawFd {
        self.records.as_raw_fd()
    }

    /// The signal by which the command asked this process to end, if it has.
    pub fn asked_by_command(&self) -> Option<libc::c_int> {
        answer(&self.answers, ASKED)
    }

    /// Says that this process stops with the command.
    pub fn say_that_we_stop(&self) {
        HandlerMessage { signal: STOPS, code: 0, sender: 0, at_ns: clock::now() }
            .send_to(self.records.as_raw_fd());
    }

    /// Ends it after its last message. Returns the time that it used, and the last signal that was meant for the command and
    /// came too late for it.
    pub fn end(self) -> (Usage, Option<libc::c_int>) {
        let Self { mut process, records, answers } = self;
        drop(records);
        let used = loop {
            match process.next(0) {
                Ok(Some(wait)) => break wait.usage,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break Usage::default(),
            }
        };
        (used, answer(&answers, LATE))
    }
}

fn answer(answers: &Shared<2>, at: usize) -> Option<libc::c_int> {
    Some(answers[at].load(Relaxed) as libc::c_int).filter(|signal| *signal != 0)
}

impl Scene<'_> {
    /// The life of the observer, with every signal blocked: system calls, and memory of its own.
    fn watch(mut self) -> i32 {
        loop {
            let mut ends = [self.signals, self.records].map(readable);
            // SAFETY: two valid entries.
            unsafe { libc::poll(ends.as_mut_ptr(), 2, -1) };
            self.note();
            if ends[1].revents != 0 {
                match self.read() {
                    Some(HandlerMessage { signal: STOPS, .. }) => self.continue_with_the_command(),
                    Some(record) => self.judge(record),
                    None => return 0,
                }
            }
        }
    }

    fn read(&self) -> Option<HandlerMessage> {
        let mut record = HandlerMessage { signal: 0, code: 0, sender: 0, at_ns: 0 };
        // SAFETY: a record is numbers, and there is room for one.
        let got = unsafe { libc::read(self.records, (&raw mut record).cast(), size_of::<HandlerMessage>()) };
        (got == size_of::<HandlerMessage>() as isize).then_some(record)
    }

    /// Notes the signals that came to the group.
    fn note(&mut self) {
        loop {
            // SAFETY: zeroes are a valid answer, and there is room for one.
            let (got, info) = unsafe {
                let mut info: libc::signalfd_siginfo = mem::zeroed();
                let got = libc::read(self.signals, (&raw mut info).cast(), size_of_val(&info));
                (got, info)
            };
            if got <= 0 {
                return;
            }
            for (signal, seen) in PASSED.into_iter().zip(&mut self.seen) {
                if signal.cast_unsigned() == info.ssi_signo {
                    *seen = (info.ssi_pid.cast_signed(), clock::now());
                }
            }
        }
    }

    fn has_seen(&self, record: &HandlerMessage) -> bool {
        PASSED.into_iter().zip(self.seen).any(|(signal, (sender, at_ns))| {
            signal == record.signal
                && sender == record.sender
                && at_ns != 0
                && at_ns.saturating_add(MOST_APART) >= record.at_ns
        })
    }

    /// Sends a signal on that came to the process above alone.
    fn judge(&mut self, record: HandlerMessage) {
        // SAFETY: questions to the kernel.
        let (ours, of_sender, of_command) =
            unsafe { (libc::getpgrp(), libc::getpgid(record.sender), libc::getpgid(self.command)) };
        let is_commands = record.code <= 0 && record.sender == self.command;
        let patience = match record.sender {
            _ if is_commands => 0,
            1.. if of_sender == ours => PATIENCE_WITH_OUR_GROUP,
            _ => PATIENCE,
        };
        loop {
            self.note();
            if self.has_seen(&record) {
                // A command that made itself a group of its own was not reached. One that has ended meanwhile, and was waited
                // for (-1), needs no other copy.
                if of_command == ours || of_command == -1 {
                    return;
                }
                break;
            }
            if clock::now() >= record.at_ns.saturating_add(patience) {
                break;
            }
            if record.sender > 0 && process::is_gone(record.sender) {
                // It sends no second one.
                self.note();
                if !self.has_seen(&record) {
                    break;
                }
                continue;
            }
            // The descriptor of a process is readable when that has ended; -1 is left out (poll(2)).
            let mut ends = [self.signals, self.pidfd].map(readable);
            // SAFETY: two valid entries.
            unsafe { libc::poll(ends.as_mut_ptr(), 2, LOOK) };
            if ends[1].revents != 0 {
                self.note();
                if !self.has_seen(&record) {
                    self.tell(LATE, record.signal);
                }
                return;
            }
        }
        if is_commands {
            self.tell(ASKED, record.signal);
            self.send(libc::SIGKILL);
        } else {
            self.send(record.signal);
        }
    }

    fn tell(&self, at: usize, signal: libc::c_int) {
        self.answers[at].store(signal.cast_unsigned().into(), Relaxed);
    }

    fn send(&self, signal: libc::c_int) {
        send(self.command, self.pidfd, signal);
    }

    /// Waits until the command is not stopped any more, and continues the process above.
    fn continue_with_the_command(&mut self) {
        let Some(state) = self.state else { return };
        loop {
            // SAFETY: no entries, which is a sleep.
            unsafe { libc::poll(ptr::null_mut(), 0, 10 * LOOK) };
            // A process that ended while it was stopped is a zombie, or no longer exists.
            if !matches!(state_of(state), Some(b'T' | b't')) {
                break;
            }
            // The process that continued the one above sends something else through the pipe then, or closes it.
            let mut end = readable(self.records);
            // SAFETY: one valid entry.
            if unsafe { libc::poll(&raw mut end, 1, 0) } != 0 {
                return;
            }
        }
        // This process would not outlive the one above.
        process::die_with_parent(self.above);
        let _ = process::kill(self.above, libc::SIGCONT);
    }
}

/// Sends a signal to a process: through its descriptor where there is one, else by its number. Only what signal-safety(7)
/// allows.
pub(super) fn send(pid: libc::pid_t, pidfd: RawFd, signal: libc::c_int) {
    if pidfd >= 0 {
        let none = ptr::null::<libc::siginfo_t>();
        // SAFETY: a system call on numbers.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, none, 0) };
    } else if pid > 0 {
        let _ = process::kill(pid, signal);
    }
}

fn readable(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

/// The letter of proc_pid_stat(5), without memory that would have to be allocated.
fn state_of(path: &CString) -> Option<u8> {
    let mut text = [0_u8; 512];
    // SAFETY: a path that ends, and room of the size that is given.
    let got = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let got = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        got
    };
    let text = text.get(..usize::try_from(got).ok()?)?;
    // Behind the name, which may hold anything.
    let behind = text.iter().rposition(|byte| *byte == b')')?;
    text.get(behind + 2).copied()
}
