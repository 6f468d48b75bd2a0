//! The time limit of a guest.
//!
//! Only a signal brings a thread out of KVM_RUN. Here it needs no handler, and no other thread can see it: the thread
//! blocks all signals, KVM_SET_SIGNAL_MASK opens one of them for as long as KVM_RUN lasts, and a timer sends that one
//! to this thread. KVM_RUN then answers EINTR; the signal itself is never delivered. It stays pending, so that
//! KVM_RUN answers EINTR from then on, also where the timer was over between two entries, and it is gone when the
//! thread ends.
//!
//! The vCPU's thread blocks every signal; one is open only inside KVM_RUN, and a timer sends it to this
//! thread. It is never delivered to a handler.

#![allow(unsafe_code)] // A timer, a thread's signals, and a request that kvm-ioctls does not have.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::{Duration, Instant};

use kvm_ioctls::VcpuFd;
use tollgate_os::signals::Set;

use crate::host::out_of_patience;

/// KVM_SET_SIGNAL_MASK, `_IOW(KVMIO, 0x8b, struct kvm_signal_mask)` in linux/kvm.h.
const SET_SIGNAL_MASK: libc::c_ulong = 0x4004_ae8b;

/// `struct kvm_signal_mask` with the kernel's 64 signals.
#[repr(C)]
struct SignalMask {
    bytes: u32,
    blocked: [u8; 8],
}

/// A timer of this thread; it is gone when this is dropped. The thread's signals stay blocked.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: Timer,
    deadline: Instant,
    patience: Duration,
}

impl Alarm {
    /// Blocks all signals of this thread and sets its timer.
    pub fn after(patience: Duration) -> io::Result<Self> {
        Set::all().block_only();
        let timer = Timer::new(libc::SIGRTMAX())?;
        // A year is as good as no limit, and fits the kernel's type; zero would stop the timer.
        let patience = patience.clamp(Duration::from_nanos(1), Duration::from_secs(u32::MAX.into()));
        let alarm = Self { timer, deadline: Instant::now() + patience, patience };
        alarm.timer.set(patience)?;
        Ok(alarm)
    }

    /// Has KVM_RUN on this processor, in this thread, end by the timer.
    pub fn reaches(&self, vcpu: &VcpuFd) -> io::Result<()> {
        let open = 1u64 << (self.timer.signal - 1);
        let mask = SignalMask { bytes: 8, blocked: (!open).to_ne_bytes() };
        // SAFETY: KVM_SET_SIGNAL_MASK reads as many bytes as the structure says, and it has so many.
        match unsafe { libc::ioctl(vcpu.as_raw_fd(), SET_SIGNAL_MASK, &raw const mask) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A clause when the time is over.
    pub fn rung(&self) -> Option<String> {
        (Instant::now() >= self.deadline).then(|| out_of_patience(self.patience))
    }
}

/// A timer of the kernel's, by timer_create(2) and its like. The system calls themselves: the C library has nothing to add to
/// a signal that goes to a thread.
#[derive(Debug)]
struct Timer {
    id: libc::c_int,
    signal: libc::c_int,
}

impl Timer {
    /// One that sends `signal` to this thread, and is not yet set.
    fn new(signal: libc::c_int) -> io::Result<Self> {
        // SAFETY: an event is numbers and pointers: zeroes are valid.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut id: libc::c_int = 0;
        let clock = libc::c_long::from(libc::CLOCK_MONOTONIC);
        // SAFETY: timer_create(2) reads the event and writes a number, both of which are alive. The signal goes to this thread
        // alone, and only while it lives.
        match unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut id) } {
            0 => Ok(Self { id, signal }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// It is over once, after so long.
    fn set(&self, after: Duration) -> io::Result<()> {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value =
            libc::timespec { tv_sec: after.as_secs().cast_signed(), tv_nsec: after.subsec_nanos().into() };
        let once = libc::itimerspec { it_interval: never, it_value: value };
        let nothing = ptr::null_mut::<libc::itimerspec>();
        let id = libc::c_long::from(self.id);
        // SAFETY: timer_settime(2) reads `once`, which is alive; the old value is not asked for.
        match unsafe {
            libc::syscall(libc::SYS_timer_settime, id, 0 as libc::c_long, &raw const once, nothing)
        } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: timer_delete(2) takes a number, and this one is deleted once.
        unsafe { libc::syscall(libc::SYS_timer_delete, libc::c_long::from(self.id)) };
    }
}
