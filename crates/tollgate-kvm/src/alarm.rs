//! The time limit of a guest.
//!
//! Only a signal brings a thread out of KVM_RUN. Here it needs no handler, and no other thread can see it: the thread
//! blocks all signals, KVM_SET_SIGNAL_MASK opens one of them for as long as KVM_RUN lasts, and a timer sends that one
//! to this thread. KVM_RUN then answers EINTR; the signal itself is never delivered. It stays pending, so that
//! KVM_RUN answers EINTR from then on, also where the timer was over between two entries, and it is gone when the
//! thread ends.

#![allow(unsafe_code)] // A request that kvm-ioctls does not have.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use kvm_ioctls::VcpuFd;
use tollgate_os::signals::Set;
use tollgate_os::timer::Timer;

/// The time limit as a reason, in a clause.
pub fn out_of_patience(patience: Duration) -> String {
    format!("it was stopped after {patience:?}")
}

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
        // A year is as good as no limit, and fits the kernel's type.
        let patience = patience.min(Duration::from_secs(u32::MAX.into()));
        let alarm = Self { timer, deadline: Instant::now() + patience, patience };
        alarm.timer.set(patience, Duration::ZERO)?;
        Ok(alarm)
    }

    /// Has KVM_RUN on this processor, in this thread, end by the timer.
    pub fn reaches(&self, vcpu: &VcpuFd) -> io::Result<()> {
        let open = 1u64 << (libc::SIGRTMAX() - 1);
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
