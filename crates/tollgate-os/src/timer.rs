//! Timers that send a signal to a thread: timer_create(2).

use std::{io, mem, ptr, time::Duration};

/// A timer of CLOCK_MONOTONIC that sends a signal to the thread that made it. Dropping it deletes it.
///
/// It uses the system calls directly: the C library adds nothing to a signal that goes to one thread.
#[derive(Debug)]
pub struct Timer {
    id: libc::c_int,
}

impl Timer {
    /// Makes a timer that is not armed.
    ///
    /// # Errors
    /// Those of timer_create(2).
    pub fn new(signal: libc::c_int) -> io::Result<Self> {
        // SAFETY: a `sigevent` consists of numbers and pointers, so zeros are valid.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut id: libc::c_int = 0;
        let clock = libc::c_long::from(libc::CLOCK_MONOTONIC);
        // SAFETY: the call reads `event` and writes `id`, and both are alive.
        match unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut id) } {
            0 => Ok(Self { id }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Arms it: it expires after `after`, at least a nanosecond, and then after each `interval` unless that is zero.
    ///
    /// # Errors
    /// EINVAL if a time is too long for the kernel.
    pub fn set(&self, after: Duration, interval: Duration) -> io::Result<()> {
        let time = |time: Duration| libc::timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        // Zero would disarm the timer.
        let after = after.max(Duration::from_nanos(1));
        let times = libc::itimerspec { it_interval: time(interval), it_value: time(after) };
        let (id, flags) = (libc::c_long::from(self.id), 0 as libc::c_long);
        let before = ptr::null_mut::<libc::itimerspec>();
        // SAFETY: the call reads `times`, which is alive; the null pointer does not ask for the old value.
        match unsafe { libc::syscall(libc::SYS_timer_settime, id, flags, &raw const times, before) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is deleted once.
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
        drop(timer);
        // One that came meanwhile would end this process after the mask.
        while rustix::io::read(&descriptor, &mut info).is_ok() {}
    }
}
