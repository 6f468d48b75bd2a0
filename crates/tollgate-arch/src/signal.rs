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
    /// The handler's address, or a number of sigaction(2).
    pub handler: usize,
    /// Flags of sigaction(2).
    pub flags: u64,
    /// The function to which the handler returns.
    pub restorer: usize,
    /// The signals that it blocks.
    pub mask: u64,
}

/// x86-64 requires SA_RESTORER for the return from a handler; arm64 takes it.
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
    /// That of rt_sigaction(2).
    pub fn now(signal: libc::c_int) -> io::Result<Self> {
        let mut action = Self::default();
        // SAFETY: with no new action the call only writes the old one, which is as the kernel defines it.
        unsafe { rt_sigaction(signal, ptr::null(), &mut action) }.map(|()| action)
    }

    /// Installs this action.
    ///
    /// # Errors
    /// That of rt_sigaction(2).
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
    // SAFETY: the caller's.
    match unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, MASK) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
