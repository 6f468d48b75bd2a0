//! Signal handlers, installed for the length of one batch.
//!
//! A handler belongs to the process, and while it is installed it answers whatever raises its signal. So each
//! answers only for instructions of the loop that it was installed for; from anywhere else the signal kills, as
//! it would have.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use tollgate_engine::clock::Clock;
use tollgate_engine::{Around, Context, Loop, Order, Refusal, Runner, Timed, TimedLoop};

/// As sigaction(2) has it for SA_SIGINFO.
pub(super) type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Signals that handlers answered since the last was installed.
pub(super) static SIGNALS: AtomicU64 = AtomicU64::new(0);

/// Where the loop begins whose faults are answered.
pub(super) static LOOP: AtomicUsize = AtomicUsize::new(0);

/// Bytes from there that are the loop's. The longest that relies on it has less than 128.
pub(super) const REACH: usize = 256;

/// Offset of the interrupted instruction's address in a ucontext: uc_mcontext begins at 40, and RIP is the
/// register number 16 (arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64).
pub(super) const RIP: usize = 40 + 16 * 8;

/// Offset of the flags: register number 17.
pub(super) const EFLAGS: usize = 40 + 17 * 8;

/// Writes a handler in instructions: `handler! { /// doc … name: "instruction", … }`.
///
/// In the body `rsi` is the siginfo, `rdx` the ucontext, and `rax` the address of the interrupted instruction;
/// `{rip}` and `{eflags}` are offsets in the ucontext. All but the callee's registers are free.
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
                // A body need not name it.
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

/// What a handler does with what it does not know: the signal's default action, for this very signal.
pub(super) extern "C" fn refuse(signal: libc::c_int) {
    // SAFETY: an all-zero sigaction is the default action. Both calls are async-signal-safe
    // (signal-safety(7)); the signal that is sent waits until the handler has returned.
    unsafe {
        let default: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, &default, ptr::null_mut());
        libc::raise(signal);
    }
}

/// The kernel's struct sigaction (arch/x86/include/uapi/asm/signal.h). The C library's call adds a flag of its own
/// to whatever is put back; this way an action is afterwards what it was before.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Action {
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: u64,
}

/// SA_RESTORER, without which x86-64 has no way back from a handler.
const SA_RESTORER: u64 = 0x0400_0000;

/// rt_sigreturn(2), number 15: where a handler returns to.
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    core::arch::naked_asm!("mov eax, 15", "syscall")
}

impl Action {
    /// `handler`, with SA_SIGINFO.
    pub fn of(handler: Handler) -> Self {
        let flags = libc::SA_SIGINFO as u64 | SA_RESTORER;
        Self { handler: handler as usize, flags, restorer: restorer as *const () as usize, mask: 0 }
    }

    /// What the process does on this signal now.
    pub fn now(signal: libc::c_int) -> io::Result<Self> {
        let mut action = Self::default();
        // SAFETY: with no new action the call only writes the old one, which is as the kernel defines it.
        match unsafe { rt_sigaction(signal, ptr::null(), &mut action) } {
            0 => Ok(action),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// From now on the process does this on the signal.
    ///
    /// # Safety
    /// The action's handler must be sound to run at whatever raises the signal.
    pub unsafe fn put(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: the action is as the kernel defines it; what it does is the caller's promise.
        match unsafe { rt_sigaction(signal, self, ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// # Safety
/// As rt_sigaction(2).
unsafe fn rt_sigaction(signal: libc::c_int, new: *const Action, old: *mut Action) -> libc::c_long {
    const MASK: usize = 8;
    // SAFETY: the caller's.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, MASK) }
}

/// A handler that is installed before each batch and gone after it.
pub(super) struct Handled {
    signal: libc::c_int,
    handler: Handler,
    /// Where the loop begins that it answers for.
    code: usize,
    before: Option<Before>,
}

/// What was there before: the process's action, the thread's mask.
struct Before {
    action: Action,
    mask: libc::sigset_t,
}

impl Handled {
    /// `handler` for faults of the loop of `timed`.
    pub fn new(signal: libc::c_int, handler: Handler, timed: Timed) -> Self {
        let code = match timed {
            Timed::Loop { code: TimedLoop::Long(code), .. } => code as usize,
            _ => 0,
        };
        Self { signal, handler, code, before: None }
    }

    /// The same for other code, such as a trial.
    pub fn of_code(signal: libc::c_int, handler: Handler, code: usize) -> Self {
        Self { signal, handler, code, before: None }
    }

    /// Installs the handler and sees to it that the signal is not blocked: a fault whose signal is blocked
    /// kills (force_sig_info, kernel/signal.c).
    pub fn install(&mut self) -> Result<(), Refusal> {
        self.remove();
        SIGNALS.store(0, Relaxed);
        LOOP.store(self.code, Relaxed);
        let refused = |error: io::Error| Refusal::of("rt_sigaction(2) is refused", &error);
        let action = Action::now(self.signal).map_err(refused)?;
        // SAFETY: the handler touches only its context and this module's counters, and leaves alone what is not
        // its loop's.
        unsafe { Action::of(self.handler).put(self.signal) }.map_err(refused)?;
        // SAFETY: an all-zero sigset_t is an empty set; the signal's number is valid.
        let (unblocked, mask) = unsafe {
            let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = (mem::zeroed(), mem::zeroed());
            libc::sigaddset(&mut set, self.signal);
            (libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, &mut before), before)
        };
        if unblocked != 0 {
            // SAFETY: what was there.
            let _ = unsafe { action.put(self.signal) };
            let error = io::Error::from_raw_os_error(unblocked);
            return Err(Refusal::of("rt_sigprocmask(2) is refused", &error));
        }
        self.before = Some(Before { action, mask });
        Ok(())
    }

    /// Puts back what was there, and returns how many signals were answered.
    pub fn remove(&mut self) -> u64 {
        if let Some(before) = self.before.take() {
            // SAFETY: what was there when the handler was installed.
            unsafe {
                let _ = before.action.put(self.signal);
                libc::pthread_sigmask(libc::SIG_SETMASK, &before.mask, ptr::null_mut());
            }
        }
        SIGNALS.load(Relaxed)
    }
}

impl Around for Handled {
    fn before(&mut self, _: &mut Context, _: u64) -> Result<(), Refusal> {
        self.install()
    }

    fn after(&mut self, _: &Context) -> Result<Option<u64>, Refusal> {
        Ok(Some(self.remove()))
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        self.remove();
    }
}

/// `timed`, after one batch of one iteration in which each operation must have raised its signal: where one
/// does not, the place cannot have `what`.
pub(super) fn tried(mut timed: Loop, operations: u64, what: &str) -> Result<Loop, Refusal> {
    let batch = timed.batch(Clock::Kernel, Order { iterations: 1, extra: 0 })?;
    match batch.counted {
        Some(signals) if signals == operations => Ok(timed),
        signals => Err(Refusal::Skip(format!(
            "{what} does not trap here: {} signals came of {operations}",
            signals.unwrap_or(0)
        ))),
    }
}

/// For [`crate::Benchmark::absence`]: what a death says of the place.
pub(super) fn absence(signal: i32) -> Option<&'static str> {
    (signal == libc::SIGSYS).then_some("a system call that it needs is killed by a seccomp filter (SIGSYS)")
}

/// Whatever the loop returned: what happened was counted.
pub(super) fn any(_: u64) -> Result<(), String> {
    Ok(())
}

/// 0, as most calls that succeed.
pub(super) fn zero(result: u64) -> Result<(), String> {
    match result as i32 {
        0 => Ok(()),
        other => Err(format!("the call returned {other} instead of 0")),
    }
}
