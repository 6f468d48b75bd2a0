//! Signal handlers that are instructions.

/// Offset of the interrupted instruction's address in a ucontext: uc_mcontext begins at 40, and RIP is register number
/// 16 (arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64).
pub const RIP: usize = 40 + 16 * 8;

/// Offset of the flags: register number 17.
pub const EFLAGS: usize = 40 + 17 * 8;

/// Offsets of RAX and RCX: registers number 13 and 14.
pub const OPERANDS: [usize; 2] = [40 + 13 * 8, 40 + 14 * 8];

/// Writes a handler in instructions: `handler! { code, reach, signals, refuse; /// doc … name: "instruction", … }`. It handles
/// signals from the first `reach` bytes of the code at the address in `code`, and counts them in `signals`. It passes others to
/// `refuse`.
///
/// In the body `rsi` is the siginfo, `rdx` the ucontext, and `rax` the address of the interrupted instruction; `{rip}`
/// and `{eflags}` are offsets in the ucontext. The body may change all caller-saved registers.
#[macro_export]
macro_rules! handler {
    (
        $code:path, $reach:path, $signals:path, $refuse:path;
        $(#[$doc:meta])* $name:ident: $($body:literal),* $(; aarch64 $($other:tt)*)?
    ) => {
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

/// rt_sigreturn(2), number 15, to which a handler returns.
///
/// # Safety
/// The kernel alone makes a handler return here.
#[unsafe(naked)]
pub unsafe extern "C" fn restorer() {
    core::arch::naked_asm!("mov eax, 15", "syscall")
}
