//! Forced context switches without privileges. Each thread has a timer whose signal interrupts it at any instruction, and
//! the handler calls sched_yield(2) there. The timer is armed again when the thread comes back: a periodic one would
//! expire while the thread is off the processor.
//!
//! Source: timer_create(2) with SIGEV_THREAD_ID, sched_yield(2). A signal also restarts a restartable sequence (rseq(2)).

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::{io, mem, ptr};

use tollgate_arch::call::sched_yield;
use tollgate_os::signals::{Disposition, Set};

use crate::prelude::*;

/// The shortest time until a running thread is switched out, in nanoseconds.
const SHORTEST: u64 = 50_000;
/// Random addition to that time, in nanoseconds.
const SPREAD: u64 = 50_000;

fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

/// The handler's data for its thread. Only that thread writes to it, in the handler or outside.
#[repr(C, align(128))]
pub(super) struct Slot {
    /// Its number among the threads of a processor, from 1 on.
    number: u32,
    /// True while switches are forced.
    active: AtomicBool,
    holds: AtomicBool,
    /// The kernel's ID of its timer.
    timer: AtomicI32,
    random: AtomicU64,
    switches: AtomicU64,
    while_holding: AtomicU64,
}

impl Slot {
    pub fn new(number: u32) -> Self {
        Self {
            number,
            active: AtomicBool::new(false),
            holds: AtomicBool::new(false),
            timer: AtomicI32::new(-1),
            random: AtomicU64::new(Random::seed() | 1),
            switches: AtomicU64::new(0),
            while_holding: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Records whether the thread holds the lock: after the acquisition, and before the release.
    #[inline(always)]
    pub fn set_holds(&self, holds: bool) {
        self.holds.store(holds, Relaxed);
    }

    #[inline(always)]
    pub fn runs(&self) {
        LAST.store(self.number, Relaxed);
    }

    /// Returns its forced switches, and those of them that happened while it held the lock.
    pub fn counts(&self) -> (u64, u64) {
        (self.switches.load(Relaxed), self.while_holding.load(Relaxed))
    }

    /// Yields, in the handler. Counts a switch only if another thread ran before sched_yield(2) returned.
    fn switch(&self) {
        if !self.active.load(Relaxed) {
            return;
        }
        let holds = self.holds.load(Relaxed);
        self.runs();
        sched_yield();
        if LAST.load(Relaxed) != self.number {
            self.switches.store(self.switches.load(Relaxed) + 1, Relaxed);
            self.while_holding.store(self.while_holding.load(Relaxed) + u64::from(holds), Relaxed);
        }
        self.runs();
        self.arm();
    }

    /// Arms the timer once, for a random time. A periodic timer could expire while the thread is off the processor, and
    /// would switch it out again at the same instruction.
    fn arm(&self) {
        // xorshift64 (Marsaglia, Xorshift RNGs, 2003).
        let mut random = self.random.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.store(random, Relaxed);
        self.set_timer(SHORTEST + random % SPREAD);
    }

    /// Arms the timer; 0 disarms it.
    fn set_timer(&self, nanoseconds: u64) {
        let once = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds as libc::c_long };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: never, it_value: once };
        let timer = self.timer.load(Relaxed);
        // SAFETY: the kernel reads the setting; an invalid timer id is refused.
        unsafe { call(libc::SYS_timer_settime, [timer as u64, 0, &raw const setting as u64, 0]) };
    }
}

/// The thread that last recorded that it runs, also in the handler. A process stresses one lock at a time.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Installs the handler of the timers' signal, for the whole process.
pub(super) fn install_handler() -> Result<()> {
    // SAFETY: the handler touches only the slot that its timer names, and makes calls that keep errno.
    let set = unsafe { Disposition::handler(expired, libc::SA_RESTART) }.set(signal());
    set.map(drop).or_refused("rt_sigaction(2) is refused")
}

extern "C" fn expired(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes the signal's siginfo (SA_SIGINFO).
    let info = unsafe { &*info };
    if info.si_code == libc::SI_TIMER {
        // SAFETY: a timer carries the address of its thread's slot, which outlives it.
        let slot = unsafe { &*info.si_value().sival_ptr.cast::<Slot>() };
        slot.switch();
    }
}

/// The calling thread's timer. Dropping it deletes the timer, and no signal arrives afterwards.
pub(super) struct Timer<'a>(&'a Slot);

impl<'a> Timer<'a> {
    pub fn new(slot: &'a Slot) -> Result<Self> {
        let refused = |what| {
            let error = io::Error::last_os_error();
            skip!(
                "forced switches are not possible here: {what} is refused: {}",
                tollgate_model::text::plainly(&error)
            )
        };
        Set::of(&[signal()]).unblock();
        // SAFETY: an all-zero sigevent is valid.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = cpu::own_thread();
        event.sigev_signo = signal();
        event.sigev_value = libc::sigval { sival_ptr: ptr::from_ref(slot).cast_mut().cast() };
        let mut number: libc::c_int = -1;
        // By system call: the C library's timer_t can differ from the kernel's, which the handler uses.
        // SAFETY: the event is valid for reading, the ID for writing.
        let made = unsafe {
            libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &raw const event, &raw mut number)
        };
        if made != 0 {
            return Err(refused("timer_create(2)"));
        }
        slot.timer.store(number, Relaxed);
        Ok(Self(slot))
    }

    pub fn start(&self) {
        self.0.active.store(true, Relaxed);
        self.0.arm();
    }

    pub fn stop(&self) {
        self.0.active.store(false, Relaxed);
        self.0.set_timer(0);
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.stop();
        let number = self.0.timer.swap(-1, Relaxed);
        // A pending signal is delivered before this returns, since it is directed at this thread.
        // SAFETY: the timer is ours.
        unsafe { libc::syscall(libc::SYS_timer_delete, number) };
    }
}
