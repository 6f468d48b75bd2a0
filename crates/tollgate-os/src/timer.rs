//! Timers that send a signal to a thread: timer_create(2).

use std::{io, mem, ptr, time::Duration};

/// A timer of CLOCK_MONOTONIC that sends a signal to the thread that made it, and to no other. Dropped, it is gone.
///
/// By the system calls themselves: the C library has nothing to add to a signal that goes to a thread.
#[derive(Debug)]
pub struct Timer {
    id: libc::c_int,
}

impl Timer {
    /// One that is not yet set.
    ///
    /// # Errors
    /// Those of timer_create(2).
    pub fn new(signal: libc::c_int) -> io::Result<Self> {
        // SAFETY: an event is numbers and pointers: zeroes are valid.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut id: libc::c_int = 0;
        let clock = libc::c_long::from(libc::CLOCK_MONOTONIC);
        // SAFETY: the call reads the event and writes a number, both of which are alive.
        match unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut id) } {
            0 => Ok(Self { id }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sets it: it is over once after so long, at least a nanosecond, and then again and again after each `interval` that is not zero.
    ///
    /// # Errors
    /// EINVAL for a time that is too long for the kernel.
    pub fn set(&self, after: Duration, interval: Duration) -> io::Result<()> {
        let time = |time: Duration| libc::timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // Zero would stop the timer.
        let after = after.max(Duration::from_nanos(1));
        let times = libc::itimerspec { it_interval: time(interval), it_value: time(after) };
        let (id, flags) = (libc::c_long::from(self.id), 0 as libc::c_long);
        let before = ptr::null_mut::<libc::itimerspec>();
        // SAFETY: the call reads `times`, which is alive; the old value is not asked for.
        match unsafe { libc::syscall(libc::SYS_timer_settime, id, flags, &raw const times, before) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the call takes a number, and this one is deleted once.
        unsafe { libc::syscall(libc::SYS_timer_delete, libc::c_long::from(self.id)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::Set;

    #[test]
    fn its_signal_comes_to_this_thread() {
        let signal = libc::SIGRTMIN() + 5;
        let _mask = Set::all().block_only_for_now();
        let descriptor = Set::of(&[signal]).descriptor().unwrap();
        let timer = Timer::new(signal).unwrap();
        timer.set(Duration::ZERO, Duration::from_millis(1)).unwrap();
        let mut info = [0; 128];
        for _ in 0..2 {
            while rustix::io::read(&descriptor, &mut info) == Err(rustix::io::Errno::AGAIN) {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(info[..4], signal.to_ne_bytes());
        }
    }
}
