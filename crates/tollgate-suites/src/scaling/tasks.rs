//! Calls of tasks: the shortest one, a wake-up of no thread, a signal, a child.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use tollgate_engine::cpu::own_thread;
use tollgate_engine::users::{Operation, Seat, Work};
use tollgate_os::process::own_pid;
use tollgate_os::signals::{Disposition, Set};

use super::cases::{SCALED, has_others, threads_at_both_ends};
use super::work::calls;
use crate::prelude::*;
use crate::syscall::call;

pub const GETPPID: Benchmark = Benchmark {
    name: "scaling/getppid",
    operation: "getppid by each user. The calls share nothing: a difference comes from the processors.",
    avoid: "This row is the reference for the other rows of this suite.",
    source: "getppid(2); will-it-scale, getppid1.c",
    crosses: &[KernelEntry, SystemCall],
    timed: |_| Timed::Whole("getppid(2)"),
    in_everything: threads_at_both_ends,
    ..SCALED
};

pub const FUTEX: Benchmark = Benchmark {
    name: "scaling/futex",
    operation: "FUTEX_WAKE of a word of its own, on which no thread sleeps, by each user.",
    avoid: "Wake only where the word says that a thread sleeps.",
    source: "futex(2); will-it-scale, futex1.c; perf bench futex hash",
    crosses: &[KernelEntry, SystemCall, KernelCode, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("futex(2)"),
    in_everything: threads_at_both_ends,
    ..SCALED
};

pub const SIGNAL: Benchmark = Benchmark {
    name: "scaling/signal",
    operation: "A signal of each user to itself, with a handler that counts it; threads share the lock of their process's signals.",
    avoid: "Notify by an eventfd or a futex.",
    source: "signal(7); tgkill(2); will-it-scale, signal1.c",
    crosses: &[KernelEntry, SystemCall, Signal, SignalSend, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("tgkill(2), rt_sigreturn(2)"),
    ..SCALED
};

pub const YIELD: Benchmark = Benchmark {
    name: "scaling/yield",
    operation: "sched_yield by each user, with nothing else to run on its processor.",
    avoid: "Wait by futex for what another thread has to do.",
    source: "sched_yield(2); will-it-scale, sched_yield.c; kernel/sched/syscalls.c",
    crosses: &[KernelEntry, SystemCall, KernelCode],
    timed: |_| Timed::Whole("sched_yield(2)"),
    ..SCALED
};

pub const FORK: Benchmark = Benchmark {
    name: "scaling/fork",
    operation: "A child that exits at once, and the wait for it, by each user: on its processor.",
    avoid: "Keep workers, and start programs by posix_spawn.",
    source: "clone(2); wait4(2); kernel/fork.c",
    crosses: &[
        KernelEntry,
        SystemCall,
        ProcessCreation,
        AddressSpaceCopy,
        ProcessExit,
        ContextSwitch,
        CacheLine,
    ],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("clone(2), exit_group(2), wait4(2)"),
    // A child copies the tables of all that the users of its process have mapped.
    company: Company::Own,
    ..SCALED
};

pub const DOES_GETPPID: Operation = Operation { prepare: getppids, switches: false };
pub const DOES_FUTEX: Operation = Operation { prepare: wakes, switches: false };
pub const DOES_SIGNAL: Operation = Operation { prepare: signals, switches: false };
pub const DOES_YIELD: Operation = Operation { prepare: yields, switches: false };
pub const DOES_FORK: Operation = Operation { prepare: forks, switches: true };

fn getppids(_: Seat) -> io::Result<Box<dyn Work>> {
    // SAFETY: the call takes nothing.
    calls(|| unsafe { call(libc::SYS_getppid, [0; 4]) })
}

/// A word with a pair of cache lines to itself.
#[repr(align(128))]
struct Word(AtomicU32);

fn wakes(_: Seat) -> io::Result<Box<dyn Work>> {
    let word = Box::new(Word(AtomicU32::new(0)));
    let wake = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u64;
    // SAFETY: the kernel only takes the word's address.
    calls(move || unsafe { call(libc::SYS_futex, [word.0.as_ptr() as u64, wake, 1, 0]) })
}

/// The signal of the operation. This program uses it for nothing else.
const SIGNAL_SENT: libc::c_int = libc::SIGUSR2;

std::thread_local! {
    /// Signals that this thread has handled.
    static HANDLED: AtomicU64 = const { AtomicU64::new(0) };
}

extern "C" fn handle(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    HANDLED.with(|handled| handled.fetch_add(1, Relaxed));
}

/// Handles the signal from now on, in this process and the children that it forks.
pub fn install_handler() -> Result<()> {
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    // SAFETY: the handler adds to a word of its thread's, which needs no initialisation and no destructor.
    let disposition = || unsafe { Disposition::handler(handle, 0) };
    let install = || disposition().set(SIGNAL_SENT).map(drop).map_err(|error| error.to_string());
    INSTALLED.get_or_init(install).clone().map_err(|why| skip!("no handler can be installed: {why}"))
}

fn signals(_: Seat) -> io::Result<Box<dyn Work>> {
    Set::of(&[SIGNAL_SENT]).unblock();
    let (process, thread) = (own_pid() as u64, own_thread() as u64);
    let mut sent = HANDLED.with(|handled| handled.load(Relaxed));
    calls(move || {
        // SAFETY: the call takes numbers, and the signal has a handler.
        let outcome = unsafe { call(libc::SYS_tgkill, [process, thread, SIGNAL_SENT as u64, 0]) };
        sent += 1;
        // A signal of a thread to itself is handled before its call returns.
        match HANDLED.with(|handled| handled.load(Relaxed)) == sent {
            true => outcome,
            false => -i64::from(libc::EIO),
        }
    })
}

fn yields(_: Seat) -> io::Result<Box<dyn Work>> {
    // SAFETY: the call takes nothing.
    calls(|| unsafe { call(libc::SYS_sched_yield, [0; 4]) })
}

fn forks(_: Seat) -> io::Result<Box<dyn Work>> {
    calls(|| {
        // SAFETY: a child with a copy of the memory; it makes one system call, which ends it. The C library does not learn of
        // it, and has nothing to do there.
        let child = unsafe { call(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0]) };
        if child == 0 {
            loop {
                // SAFETY: the call ends this process.
                unsafe { call(libc::SYS_exit_group, [0; 4]) };
            }
        }
        if child < 0 {
            return child;
        }
        let mut status = 0_i32;
        // SAFETY: the status is valid for writing, and the child is this user's.
        let waited = unsafe { call(libc::SYS_wait4, [child as u64, &raw mut status as u64, 0, 0]) };
        match (waited == child, status) {
            (true, 0) => 0,
            (true, _) => -i64::from(libc::ECHILD),
            (false, _) => waited.min(-1),
        }
    })
}
