//! The time limit of a guest.
//!
//! Only a signal brings a thread out of KVM_RUN. Here it needs no handler, and no other thread can see it: the thread
//! blocks all signals, KVM_SET_SIGNAL_MASK unblocks one of them during KVM_RUN, and a timer sends that one to this
//! thread. KVM_RUN then fails with EINTR; the signal itself is never delivered. It stays pending, so KVM_RUN fails with
//! EINTR from then on, even if the timer expired between two entries. It is gone when the thread ends.

#![allow(unsafe_code)] // A request that kvm-ioctls does not have.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use kvm_ioctls::VcpuFd;
use tollgate_os::signals::Set;
use tollgate_os::timer::Timer;

use crate::out_of_patience;

/// KVM_SET_SIGNAL_MASK, `_IOW(KVMIO, 0x8b, struct kvm_signal_mask)` in linux/kvm.h.
const SET_SIGNAL_MASK: libc::c_ulong = 0x4004_ae8b;

#[repr(C)]
struct SignalMask {
    bytes: u32,
    blocked: [u8; 8],
}

/// A timer of this thread, deleted when this is dropped. The thread's signals stay blocked.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: Timer,
    deadline: Instant,
    patience: Duration,
}

impl Alarm {
    pub fn after(patience: Duration) -> io::Result<Self> {
        Set::all().block_only();
        let timer = Timer::new(libc::SIGRTMAX())?;
        // A year is as good as no limit, and fits the kernel's type.
        let patience = patience.min(Duration::from_secs(u32::MAX.into()));
        let alarm = Self { timer, deadline: Instant::now() + patience, patience };
        alarm.timer.set(patience, Duration::ZERO)?;
        Ok(alarm)
    }

    /// Lets the timer end KVM_RUN on this processor, in this thread.
    pub fn reaches(&self, vcpu: &VcpuFd) -> io::Result<()> {
        let open = 1u64 << (libc::SIGRTMAX() - 1);
        let mask = SignalMask { bytes: 8, blocked: (!open).to_ne_bytes() };
        // SAFETY: KVM_SET_SIGNAL_MASK reads the number of bytes that the structure states, and the structure has them.
        match unsafe { libc::ioctl(vcpu.as_raw_fd(), SET_SIGNAL_MASK, &raw const mask) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub fn rung(&self) -> Option<String> {
        (Instant::now() >= self.deadline).then(|| out_of_patience(self.patience))
    }
}
