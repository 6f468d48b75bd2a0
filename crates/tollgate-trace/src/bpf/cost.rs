//! The overhead of tracing, measured in a process of its own: getppid(2) before the programs are attached, with them attached, and
//! traced by them.

#![allow(unsafe_code)] // fork(2), and memory that is shared with the child.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};

/// Stretches of one measurement, of which the median counts, and calls in each.
const STRETCHES: usize = 9;
const CALLS: u64 = 200;

/// Nanoseconds that are added to a call, where they could be measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Costs {
    /// Of a process that is traced.
    pub traced: Option<f64>,
    /// Of one that is not.
    pub others: Option<f64>,
}

/// The process: it makes its calls for each byte that it reads from `orders`, and ends when the pipe closes.
pub(super) struct Subject {
    process: OwnedFd,
    go: Option<OwnedFd>,
    done: OwnedFd,
    times: Times,
    /// A call by itself.
    untraced: f64,
}

impl Subject {
    /// Starts it, and measures a call before programs are attached.
    pub fn new() -> io::Result<Self> {
        let times = Times::new()?;
        let (orders, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (done, tells) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        // SAFETY: the child makes system calls and touches memory that is mapped already; it neither allocates nor takes a lock.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            drop((go, done));
            child(&orders, &tells, &times);
        }
        let pid = Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error)?;
        let process = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(error) => {
                drop((orders, go));
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
                return Err(error.into());
            }
        };
        drop((orders, tells));
        let mut subject = Self { process, go: Some(go), done, times, untraced: 0.0 };
        subject.untraced = subject.run()?;
        Ok(subject)
    }

    /// Measures with the programs attached, first untraced, then traced once `adopt` has made that so. The process has ended then.
    pub fn measure(self, adopt: impl FnOnce(BorrowedFd) -> io::Result<()>) -> Costs {
        let Ok(beside) = self.run() else { return Costs::default() };
        let others = Some((beside - self.untraced).max(0.0));
        if adopt(self.process.as_fd()).is_err() {
            return Costs { traced: None, others };
        }
        let traced = self.run().ok().map(|traced| (traced - self.untraced).max(0.0));
        Costs { traced, others }
    }

    /// One measurement: nanoseconds for a call.
    fn run(&self) -> io::Result<f64> {
        let go = self.go.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        rustix::io::write(go, &[1])?;
        let mut answer = [0u8; 1];
        if rustix::io::retry_on_intr(|| rustix::io::read(&self.done, &mut answer))? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut times: Vec<u64> =
            self.times.words().iter().map(|word| word.load(Ordering::Acquire)).collect();
        times.sort_unstable();
        Ok(times[STRETCHES / 2] as f64 / CALLS as f64)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        drop(self.go.take());
        let _ = rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED)
        });
    }
}

/// The child's life.
fn child(orders: &OwnedFd, tells: &OwnedFd, times: &Times) -> ! {
    let mut order = [0u8; 1];
    while matches!(rustix::io::retry_on_intr(|| rustix::io::read(orders, &mut order)), Ok(1)) {
        for time in times.words() {
            let began = monotonic_ns();
            for _ in 0..CALLS {
                // SAFETY: getppid(2) does nothing but return a number.
                unsafe { libc::syscall(libc::SYS_getppid) };
            }
            time.store(monotonic_ns() - began, Ordering::Release);
        }
        if rustix::io::write(tells, &order).is_err() {
            break;
        }
    }
    // SAFETY: ends the child without running anything of its parent's.
    unsafe { libc::_exit(0) }
}

/// The clock that programs read (bpf_ktime_get_ns), in nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The time of each stretch, in memory that both processes see.
struct Times(*mut libc::c_void);

impl Times {
    const BYTES: usize = STRETCHES * 8;

    fn new() -> io::Result<Self> {
        let (all, shared) =
            (rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE, rustix::mm::MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice.
        Ok(Self(unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), Self::BYTES, all, shared) }?))
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is so long, is aligned to pages, lives as long as self, and is reached by atomic words only.
        unsafe { std::slice::from_raw_parts(self.0.cast(), STRETCHES) }
    }
}

impl Drop for Times {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it any more.
        let _ = unsafe { rustix::mm::munmap(self.0, Self::BYTES) };
    }
}
