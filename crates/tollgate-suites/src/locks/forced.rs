//! Switches that are forced without a privilege: each thread has a timer whose signal comes at whatever instruction it has
//! come to, and the handler gives the processor away there.
//!
//! Source: timer_create(2) with SIGEV_THREAD_ID, sched_yield(2). A signal also restarts a restartable sequence (rseq(2)).

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::{io, mem, ptr};

use crate::syscall::{call, sched_yield};
use tollgate_engine::{Random, Refusal, cpu};

/// The shortest time until a thread that goes on running is switched out, in nanoseconds.
const SHORTEST: u64 = 50_000;
/// And how much longer it may be, at random.
const SPREAD: u64 = 50_000;

/// By which the timers speak.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

/// What the handler knows of the thread that it interrupts. That thread alone writes to it, in the handler or outside.
#[repr(C, align(128))]
pub(super) struct Slot {
    /// Its number among those that share a processor, from 1 on.
    number: u32,
    /// Whether it is to be switched out.
    active: AtomicBool,
    /// Whether it has the lock.
    holds: AtomicBool,
    /// The kernel's number of its timer.
    timer: AtomicI32,
    /// The state of its random numbers.
    random: AtomicU64,
    switches: AtomicU64,
    while_holding: AtomicU64,
}

impl Slot {
    /// Of thread number `number`.
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

    /// Its thread's number.
    #[inline(always)]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether the thread has the lock: said after it was taken, and before it is given back.
    #[inline(always)]
    pub fn set_holds(&self, holds: bool) {
        self.holds.store(holds, Relaxed);
    }

    /// Says that the thread runs.
    #[inline(always)]
    pub fn runs(&self) {
        LAST.store(self.number, Relaxed);
    }

    /// How often it was switched out, and how often while it had the lock.
    pub fn counts(&self) -> (u64, u64) {
        (self.switches.load(Relaxed), self.while_holding.load(Relaxed))
    }

    /// In the handler: somebody else's turn. Counted only where somebody else has run before this returns.
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
        self.instance();
    }

    /// The next signal comes after a while that nobody knows. Once, so that each comes while the thread runs: one that was to come
    /// while it did not would only switch it out again where it was switched out before.
    fn instance(&self) {
        // xorshift64 (Marsaglia, Xorshift RNGs, 2003).
        let mut random = self.random.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.store(random, Relaxed);
        self.set_timer(SHORTEST + random % SPREAD);
    }

    /// After so many nanoseconds; with 0 not at all.
    fn set_timer(&self, nanoseconds: u64) {
        let once = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds as libc::c_long };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = libc::itimerspec { it_interval: never, it_value: once };
        let timer = self.timer.load(Relaxed);
        // SAFETY: the kernel reads the setting; a number that is no timer's is refused.
        unsafe { call(libc::SYS_timer_settime, [timer as u64, 0, &raw const setting as u64, 0]) };
    }
}

/// Which thread was the last to say that it runs. One for all: a process stresses one lock at a time.
static LAST: AtomicU32 = AtomicU32::new(0);

/// What each timer's signal is answered with, in the whole process, from now on.
///
/// # Errors
/// [`Refusal::Skip`] where the place does not allow it.
pub(super) fn install_handler() -> Result<(), Refusal> {
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = expired as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler touches only the slot that its own timers name, and makes calls that keep errno.
    match unsafe { libc::sigaction(signal(), &action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Refusal::of("rt_sigaction(2) is refused", &io::Error::last_os_error())),
    }
}

extern "C" fn expired(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over the siginfo of the signal (SA_SIGINFO).
    let info = unsafe { &*info };
    if info.si_code == libc::SI_TIMER {
        // SAFETY: a timer carries the address of its thread's slot, which outlives it.
        let slot = unsafe { &*info.si_value().sival_ptr.cast::<Slot>() };
        slot.switch();
    }
}

/// The timer of the thread that makes it. It goes with this, and no signal of it comes later.
pub(super) struct Timer<'a>(&'a Slot);

impl<'a> Timer<'a> {
    /// Not running yet.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where the place does not allow it.
    pub fn new(slot: &'a Slot) -> Result<Self, Refusal> {
        let refused = |what| {
            let error = io::Error::last_os_error();
            Refusal::Skip(format!(
                "no switches can be forced here: {what} is refused: {}",
                tollgate_model::text::plainly(&error)
            ))
        };
        // SAFETY: an all-zero sigset_t is an empty set; the signal's number is valid.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigaddset(&mut set, signal());
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
        }
        // SAFETY: an all-zero sigevent is valid.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_notify_thread_id = cpu::own_thread();
        event.sigev_signo = signal();
        event.sigev_value = libc::sigval { sival_ptr: ptr::from_ref(slot).cast_mut().cast() };
        let mut number: libc::c_int = -1;
        // By number: the C library's timer_t need not be the kernel's, and the handler speaks to the kernel alone.
        // SAFETY: the event is valid for reading, the number for writing.
        let made = unsafe {
            libc::syscall(libc::SYS_timer_create, libc::CLOCK_MONOTONIC, &raw const event, &raw mut number)
        };
        if made != 0 {
            return Err(refused("timer_create(2)"));
        }
        slot.timer.store(number, Relaxed);
        Ok(Self(slot))
    }

    /// From now on the thread is switched out again and again.
    pub fn start(&self) {
        self.0.active.store(true, Relaxed);
        self.0.instance();
    }

    /// No more.
    pub fn stop(&self) {
        self.0.active.store(false, Relaxed);
        self.0.set_timer(0);
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.stop();
        let number = self.0.timer.swap(-1, Relaxed);
        // A signal that is on its way comes before this returns, as it is this thread's.
        // SAFETY: the timer is ours.
        unsafe { libc::syscall(libc::SYS_timer_delete, number) };
    }
}
