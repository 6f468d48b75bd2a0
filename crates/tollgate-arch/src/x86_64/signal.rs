//! Signal handlers that are instructions, and their installation without the C library.

use std::{io, ptr};

/// The signature of a handler with SA_SIGINFO (sigaction(2)).
pub type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Offset of the interrupted instruction's address in a ucontext: uc_mcontext begins at 40, and RIP is register number
/// 16 (arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64).
pub const RIP: usize = 40 + 16 * 8;

/// Offset of the flags: register number 17.
pub const EFLAGS: usize = 40 + 17 * 8;

/// Writes a handler in instructions: `handler! { code, reach, signals, refuse; /// doc … name: "instruction", … }`. It handles
/// signals from the first `reach` bytes of the code at the address in `code`, and counts them in `signals`. It passes others to
/// `refuse`.
///
/// In the body `rsi` is the siginfo, `rdx` the ucontext, and `rax` the address of the interrupted instruction; `{rip}`
/// and `{eflags}` are offsets in the ucontext. The body may change all caller-saved registers.
#[macro_export]
macro_rules! handler {
    ($code:path, $reach:path, $signals:path, $refuse:path; $(#[$doc:meta])* $name:ident: $($body:literal),*) => {
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
                "sub rcx, [rip + {code}]",
                "cmp rcx, {reach}",
                "jae {refuse}",
                $($body,)*
                "inc qword ptr [rip + {signals}]",
                "ret",
                // A body may leave it unused.
                "/* {eflags} */",
                rip = const $crate::signal::RIP,
                eflags = const $crate::signal::EFLAGS,
                reach = const $reach,
                code = sym $code,
                signals = sym $signals,
                refuse = sym $refuse,
            )
        }
    };
}

/// The kernel's struct sigaction (arch/x86/include/uapi/asm/signal.h). The C library's call adds a flag to a restored
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

/// x86-64 requires SA_RESTORER for the return from a handler.
const SA_RESTORER: u64 = 0x0400_0000;

/// rt_sigreturn(2), number 15, to which a handler returns.
#[unsafe(naked)]
unsafe extern "C" fn restorer() {
    core::arch::naked_asm!("mov eax, 15", "syscall")
}

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
