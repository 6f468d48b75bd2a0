//! Signal handlers, installed for one batch.
//!
//! A handler belongs to the process and gets its signal from any source. So each one handles only instructions of its
//! loop; from anywhere else the signal kills, as by default.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::{io, ptr};

use tollgate_os::signals::{self, Set};

use crate::prelude::*;

/// The signature of a handler with SA_SIGINFO (sigaction(2)).
pub(super) type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Number of signals handled since the last installation. Handlers get no argument of ours, so they use statics.
pub(super) static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// The start of the loop whose faults are handled.
pub(super) static LOOP: AtomicUsize = AtomicUsize::new(0);

/// Maximum length of the loop in bytes. The longest loop with a handler has less than 128.
pub(super) const REACH: usize = 256;

/// Offset of the interrupted instruction's address in a ucontext: uc_mcontext begins at 40, and RIP is register number
/// 16 (arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64).
pub(super) const RIP: usize = 40 + 16 * 8;

/// Offset of the flags: register number 17.
pub(super) const EFLAGS: usize = 40 + 17 * 8;

/// Writes a handler in instructions: `handler! { /// doc … name: "instruction", … }`.
///
/// In the body `rsi` is the siginfo, `rdx` the ucontext, and `rax` the address of the interrupted instruction; `{rip}`
/// and `{eflags}` are offsets in the ucontext. The body may change all caller-saved registers.
macro_rules! handler {
    ($(#[$doc:meta])* $name:ident: $($body:literal),*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(
            signal: libc::c_int,
            info: *mut libc::siginfo_t,
            context: *mut libc::c_void,
        ) {
            core::arch::naked_asm!(
                "mov rax, [rdx + {rip}]",
                "mov rcx, rax",
                "sub rcx, [rip + {loop_begin}]",
                "cmp rcx, {reach}",
                "jae {refuse}",
                $($body,)*
                "inc qword ptr [rip + {signals}]",
                "ret",
                // A body may leave it unused.
                "/* {eflags} */",
                rip = const $crate::traps::handler::RIP,
                eflags = const $crate::traps::handler::EFLAGS,
                reach = const $crate::traps::handler::REACH,
                loop_begin = sym $crate::traps::handler::LOOP,
                signals = sym $crate::traps::handler::SIGNALS,
                refuse = sym $crate::traps::handler::refuse,
            )
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

/// The kernel's struct sigaction (arch/x86/include/uapi/asm/signal.h). The C library's call adds a flag to a restored
/// action; the system call restores it exactly.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Action {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

/// x86-64 requires SA_RESTORER for the return from a handler.
const SA_RESTORER: u64 = 0x0400_0000;

/// rt_sigreturn(2), number 15, to which a handler returns.
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    core::arch::naked_asm!("mov eax, 15", "syscall")
}

impl Action {
    pub fn of(handler: Handler) -> Self {
        let flags = libc::SA_SIGINFO as u64 | SA_RESTORER;
        Self { handler: handler as usize, flags, restorer: restorer as *const () as usize, mask: 0 }
    }

    pub fn now(signal: libc::c_int) -> io::Result<Self> {
        let mut action = Self::default();
        // SAFETY: with no new action the call only writes the old one, which is as the kernel defines it.
        checked(unsafe { rt_sigaction(signal, ptr::null(), &mut action) }).map(|_| action)
    }

    /// Installs this action.
    ///
    /// # Safety
    /// The action's handler must be sound to run for every source of the signal.
    pub unsafe fn put(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: the action is as the kernel defines it; the caller promises a sound handler.
        checked(unsafe { rt_sigaction(signal, self, ptr::null_mut()) }).map(drop)
    }
}

/// # Safety
/// As rt_sigaction(2).
unsafe fn rt_sigaction(signal: libc::c_int, new: *const Action, old: *mut Action) -> libc::c_long {
    const MASK: usize = 8;
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, MASK) }
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
    // SAFETY: the caller's.
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
