//! Signal handlers, installed for one batch.
//!
//! A handler belongs to the process and gets its signal from any source. So each one handles only instructions of its
//! loop; from anywhere else the signal kills, as by default.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use tollgate_arch::signal::{Action, Handler};
use tollgate_os::signals::{self, Set};

use crate::prelude::*;

/// Number of signals handled since the last installation. Handlers get no argument of ours, so they use statics.
pub(super) static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// The start of the loop whose faults are handled.
pub(super) static LOOP: AtomicUsize = AtomicUsize::new(0);

/// Maximum length of the loop in bytes. The longest loop with a handler has less than 128.
pub(super) const REACH: usize = 256;

/// Writes a handler of a loop's signals in instructions: see [`tollgate_arch::handler!`].
macro_rules! handler {
    ($($handler:tt)*) => {
        tollgate_arch::handler! {
            $crate::traps::handler::LOOP, $crate::traps::handler::REACH, $crate::traps::handler::SIGNALS,
            $crate::traps::handler::refuse; $($handler)*
        }
    };
}
pub(super) use handler;

/// Handles a foreign signal: raises it again with the default action.
pub(super) extern "C" fn refuse(signal: libc::c_int) {
    // Both are async-signal-safe (signal-safety(7)); the raised signal is pending until the handler returns.
    signals::default(&[signal]);
    signals::raise(signal);
}

pub(super) struct Handled {
    signal: libc::c_int,
    handler: Handler,
    /// The start of its loop.
    code: usize,
    before: Option<Before>,
}

struct Before {
    action: Action,
    mask: Set,
}

impl Handled {
    /// Makes `handler` handle faults of the loop of `timed`.
    pub fn new(signal: libc::c_int, handler: Handler, timed: Timed) -> Self {
        let code = match timed {
            Timed::Loop { code: TimedLoop::Long(code), .. } => code.address(),
            _ => 0,
        };
        Self { signal, handler, code, before: None }
    }

    /// Makes `handler` handle faults of other code, such as a trial.
    pub fn of_code(signal: libc::c_int, handler: Handler, code: usize) -> Self {
        Self { signal, handler, code, before: None }
    }

    /// Installs the handler and unblocks its signal: blocked, a fault kills (force_sig_info, kernel/signal.c).
    pub fn install(&mut self) -> Result<()> {
        self.remove();
        SIGNALS.store(0, Relaxed);
        LOOP.store(self.code, Relaxed);
        let refused = |error: io::Error| Refusal::new("rt_sigaction(2) is refused", &error);
        let action = Action::now(self.signal).map_err(refused)?;
        // SAFETY: the handler touches only its context and this module's counters, and ignores other code.
        unsafe { Action::of(self.handler).put(self.signal) }.map_err(refused)?;
        let mask = Set::of(&[self.signal]).unblock();
        self.before = Some(Before { action, mask });
        Ok(())
    }

    /// Restores the previous state, and returns the number of handled signals.
    pub fn remove(&mut self) -> u64 {
        if let Some(before) = self.before.take() {
            // SAFETY: this is the action from before the installation.
            let _ = unsafe { before.action.put(self.signal) };
            before.mask.block_only();
        }
        SIGNALS.load(Relaxed)
    }
}

impl BatchHooks for Handled {
    fn before(&mut self, _: &mut LoopContext, _: u64) -> Result<()> {
        self.install()
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        Ok(Some(self.remove()))
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns whether this code traps exactly once with the handler installed.
///
/// # Safety
/// The code must be sound to run, even if it does not trap.
pub(super) unsafe fn traps(
    signal: libc::c_int,
    handler: Handler,
    code: unsafe extern "C" fn(),
) -> Result<bool> {
    let mut handled = Handled::of_code(signal, handler, code as *const () as usize);
    handled.install()?;
    // SAFETY: by the caller's contract.
    unsafe { code() };
    Ok(handled.remove() == 1)
}

/// Makes the instance of a loop without a context, each operation of which raises the signal, after a trial.
pub(super) fn counted(
    timed: Timed,
    check: fn(u64) -> Result<(), String>,
    handled: Handled,
    what: &str,
) -> Result<Instance> {
    Ok(tried(Loop::without_context(timed, check)?.with_hooks(handled), 1, what)?.here())
}

/// Returns `timed` after a trial of one iteration. Skips `what` unless each operation raises its signal.
pub(super) fn tried(mut timed: Loop, operations: u64, what: &str) -> Result<Loop> {
    let batch = timed.batch(Clock::Kernel, Order::new(1))?;
    match batch.counted {
        Some(signals) if signals == operations => Ok(timed),
        signals => Err(skip!(
            "{what} does not trap here: {operations} operations raised {} signals",
            signals.unwrap_or(0)
        )),
    }
}

/// Defaults for benchmarks of this suite that a seccomp filter may forbid.
pub(super) const TRAP: Benchmark = Benchmark { absence: &[KILLED_BY_FILTER], ..PLAIN };

/// Defaults for benchmarks whose operation raises a signal, which a handler counts.
pub(super) const SIGNAL: Benchmark = Benchmark {
    // The handler returns by rt_sigreturn, a system call.
    crosses: &[KernelEntry, Exception, KernelCode, Signal, UserCopy, SystemCall],
    counts: Some("signals"),
    ..TRAP
};
