//! Measures the overhead of tracing in a process of its own: getppid(2) without programs, with them attached, and traced.

#![allow(unsafe_code)] // Calls getppid(2) directly, since a library may cache the result.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{io, sync::atomic::Ordering};

use tollgate_os::process::{self, Child};
use tollgate_os::shared::Shared;

use crate::clock;

pub(super) const CALL: usize = libc::SYS_getppid as usize;
/// A measurement is the median over these stretches, of this many calls each.
const STRETCHES: usize = 9;
const CALLS: u64 = 100;

/// Nanoseconds added to a call, if they could be measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Costs {
    /// For a traced process, if the call was requested.
    pub traced: Option<f64>,
    /// For an untraced process.
    pub others: Option<f64>,
}

/// The measured process. It makes its calls for each byte that it reads from `orders`, and is killed at the end.
pub(super) struct Subject {
    // Fields drop in this order: the process is killed first.
    _child: Child,
    process: OwnedFd,
    go: OwnedFd,
    done: OwnedFd,
    times: Shared<STRETCHES>,
    /// Nanoseconds per call without programs.
    untraced: f64,
}

impl Subject {
    pub fn new() -> io::Result<Self> {
        let times = Shared::new()?;
        let (orders, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (done, tells) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // The child has its own copy of the write end of its orders, so it ends with this process, not with the pipe.
        let child = process::fork_bound(|| serve(&orders, &tells, &times))?;
        let process = child.pidfd()?;
        let mut subject = Self { _child: child, process, go, done, times, untraced: 0.0 };
        subject.untraced = subject.run()?;
        Ok(subject)
    }

    /// Measures with the programs attached: first untraced, then traced by `adopt`. Then ends the process.
    pub fn measure(self, adopt: impl FnOnce(BorrowedFd) -> io::Result<()>) -> Costs {
        let Ok(beside) = self.run() else { return Costs::default() };
        let others = Some((beside - self.untraced).max(0.0));
        if adopt(self.process.as_fd()).is_err() {
            return Costs { traced: None, others };
        }
        let traced = self.run().ok().map(|traced| (traced - self.untraced).max(0.0));
        Costs { traced, others }
    }

    /// Runs one measurement; returns nanoseconds per call.
    fn run(&self) -> io::Result<f64> {
        rustix::io::write(&self.go, &[1])?;
        let mut answer = [0u8; 1];
        if rustix::io::retry_on_intr(|| rustix::io::read(&self.done, &mut answer))? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut times = self.times.each_ref().map(|time| time.load(Ordering::Acquire));
        times.sort_unstable();
        Ok(times[STRETCHES / 2] as f64 / CALLS as f64)
    }
}

fn serve(orders: &OwnedFd, tells: &OwnedFd, times: &Shared<STRETCHES>) -> i32 {
    let mut order = [0u8; 1];
    while matches!(rustix::io::retry_on_intr(|| rustix::io::read(orders, &mut order)), Ok(1)) {
        for time in times.iter() {
            let began = clock::now();
            for _ in 0..CALLS {
                // SAFETY: getppid(2) only returns a number.
                unsafe { libc::syscall(libc::SYS_getppid) };
            }
            time.store(clock::now() - began, Ordering::Release);
        }
        if rustix::io::write(tells, &order).is_err() {
            break;
        }
    }
    0
}
