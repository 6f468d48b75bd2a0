use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tollgate_engine::cpu::own_thread;
use tollgate_os::process::own_pid;
use tollgate_os::signals::{Disposition, Set};

use super::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "scaling/signal",
    operation: "A signal of each thread or process to itself, with a handler that counts it; threads share the lock of their process's signals.",
    avoid: "Notify by an eventfd or a futex.",
    source: "signal(7); tgkill(2); will-it-scale, signal1.c",
    crosses: &[KernelEntry, SystemCall, Signal, SignalSend, CacheLine],
    timed: |_| Timed::Whole("tgkill(2), rt_sigreturn(2)"),
    kind: Kind::Instance(|_, params, context| {
        instance(&const { Operation::steady(prepare) }, params, context)
    }),
    ..SCALED
};

/// The program uses this signal for nothing else.
const SIGNAL_SENT: libc::c_int = libc::SIGUSR2;

std::thread_local! {
    /// Signals that this thread has handled.
    static HANDLED: AtomicU64 = const { AtomicU64::new(0) };
}

extern "C" fn handle(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    HANDLED.with(|handled| handled.fetch_add(1, Relaxed));
}

fn prepare(_: Seat) -> io::Result<Box<dyn Work>> {
    // SAFETY: the handler adds to a thread-local word, which needs no initialisation and no destructor.
    let handler = unsafe { Disposition::handler(handle, 0) };
    handler.set(SIGNAL_SENT)?;
    Set::of(&[SIGNAL_SENT]).unblock();
    let (process, thread) = (own_pid() as u64, own_thread() as u64);
    let mut sent = HANDLED.with(|handled| handled.load(Relaxed));
    calls(move || {
        // SAFETY: the call takes numbers, and the signal has a handler.
        let outcome = unsafe { call(libc::SYS_tgkill, [process, thread, SIGNAL_SENT as u64, 0]) };
        sent += 1;
        // A signal that a thread sends to itself is handled before the call returns.
        if HANDLED.with(|handled| handled.load(Relaxed)) == sent { outcome } else { -i64::from(libc::EIO) }
    })
}
