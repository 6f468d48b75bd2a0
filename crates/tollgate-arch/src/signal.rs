//! Signal handlers that are instructions, and their installation without the C library.

use std::{io, ptr};

pub use crate::chosen::signal::*;

/// The signature of a handler with SA_SIGINFO (sigaction(2)).
pub type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// The kernel's struct sigaction (asm/signal.h of x86 and of arm64). The C library's call adds a flag to a restored
/// action; the system call restores it exactly.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Action {
    /// The handler's address, or a constant of sigaction(2).
    pub handler: usize,
    /// Flags of sigaction(2).
    pub flags: u64,
    /// The function to which the handler returns.
    pub restorer: usize,
    /// The signals that it blocks.
    pub mask: u64,
}

/// x86-64 requires SA_RESTORER for the return from a handler; arm64 accepts it.
const SA_RESTORER: u64 = 0x0400_0000;

impl Action {
    /// Makes an action that calls this handler.
    pub fn of(handler: Handler) -> Self {
        let flags = libc::SA_SIGINFO as u64 | SA_RESTORER;
        Self { handler: handler as usize, flags, restorer: restorer as *const () as usize, mask: 0 }
    }

    /// Returns a signal's action.
    ///
    /// # Errors
    /// The error of rt_sigaction(2).
    pub fn now(signal: libc::c_int) -> io::Result<Self> {
        let mut action = Self::default();
        // SAFETY: with no new action the call only writes the old one, which is as the kernel defines it.
        unsafe { rt_sigaction(signal, ptr::null(), &mut action) }.map(|()| action)
    }

    /// Installs this action.
    ///
    /// # Errors
    /// The error of rt_sigaction(2).
    ///
    /// # Safety
    /// The action's handler must be sound to run for every source of the signal.
    pub unsafe fn put(&self, signal: libc::c_int) -> io::Result<()> {
        // SAFETY: the action is as the kernel defines it; the caller promises a sound handler.
        unsafe { rt_sigaction(signal, self, ptr::null_mut()) }
    }
}

/// # Safety
/// As rt_sigaction(2).
unsafe fn rt_sigaction(signal: libc::c_int, new: *const Action, old: *mut Action) -> io::Result<()> {
    const MASK: usize = 8;
    // SAFETY: by the caller's contract.
    match unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, MASK) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::frame::LoopContext;
    use crate::{handler, timed_loop};

    static CODE: AtomicUsize = AtomicUsize::new(0);
    static SIGNALS: AtomicU64 = AtomicU64::new(0);
    const REACH: usize = 256;

    extern "C" fn refuse(_: libc::c_int) {
        std::process::abort()
    }

    timed_loop! {
        /// An instruction that no processor has.
        invalid: called "ud2"; aarch64 "udf 0"
    }

    handler! {
        CODE, REACH, SIGNALS, refuse;
        /// Steps over it.
        step_over: "add rax, 2", "mov [rdx + {rip}], rax"; aarch64 "add x3, x3, 4", "str x3, [x2, {rip}]"
    }

    #[test]
    fn a_handler_counts_the_faults_of_its_loop_and_steps_over_them() {
        CODE.store(invalid.address(), Relaxed);
        let before = Action::now(libc::SIGILL).expect("the action");
        // SAFETY: the handler changes its context and these counters alone.
        unsafe { Action::of(step_over).put(libc::SIGILL) }.expect("the action");
        // SAFETY: the handler steps over the loop's instruction.
        unsafe { invalid.run(3, &mut LoopContext::default()) };
        // SAFETY: as it was.
        unsafe { before.put(libc::SIGILL) }.expect("the action");
        assert_eq!((SIGNALS.load(Relaxed), Action::now(libc::SIGILL).expect("the action")), (3, before));
    }
}
