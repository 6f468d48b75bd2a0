//! Signal handlers that are instructions.

/// Offset of the interrupted instruction's address in a ucontext: uc_mcontext begins at 176, and has the faulting address, 31
/// registers and the stack pointer before it (arch/arm64/include/uapi/asm/sigcontext.h).
pub const RIP: usize = 176 + 8 + 32 * 8;

/// Offset of the flags, which follow.
pub const EFLAGS: usize = RIP + 8;

/// Offsets of x0 and x1.
pub const OPERANDS: [usize; 2] = [176 + 8, 176 + 16];

/// Writes a handler in instructions, as on x86-64: those after `; aarch64`. It has none if nothing stands there, and is never
/// installed: its loop has none either.
///
/// In the body `x1` is the siginfo, `x2` the ucontext, and `x3` the address of the interrupted instruction; `{rip}` and `{eflags}`
/// are offsets in the ucontext. The body may change all caller-saved registers.
#[macro_export]
macro_rules! handler {
    (@ $code:path, $reach:path, $signals:path, $refuse:path; $(#[$doc:meta])* $name:ident: $($body:literal),*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(
            signal: libc::c_int,
            info: *mut libc::siginfo_t,
            context: *mut libc::c_void,
        ) {
            core::arch::naked_asm!(
                "ldr x3, [x2, {rip}]",
                "adrp x4, {code}",
                "ldr x4, [x4, :lo12:{code}]",
                "sub x4, x3, x4",
                "cmp x4, {reach}",
                "b.lo 2f",
                "b {refuse}",
                "2:",
                $($body,)*
                "adrp x4, {signals}",
                "add x4, x4, :lo12:{signals}",
                "ldr x5, [x4]",
                "add x5, x5, 1",
                "str x5, [x4]",
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
    (
        $code:path, $reach:path, $signals:path, $refuse:path;
        $(#[$doc:meta])* $name:ident: $($x86:literal),* ; aarch64 $($body:literal),*
    ) => {
        $crate::handler! { @ $code, $reach, $signals, $refuse; $(#[$doc])* $name: $($body),* }
    };
    // Its condition is the same on both if it only counts.
    ($code:path, $reach:path, $signals:path, $refuse:path; $(#[$doc:meta])* $name:ident:) => {
        $crate::handler! { @ $code, $reach, $signals, $refuse; $(#[$doc])* $name: }
    };
    (
        $code:path, $reach:path, $signals:path, $refuse:path; $(#[$doc:meta])* $name:ident: $($x86:literal),+
    ) => {
        $crate::handler! { @ $code, $reach, $signals, $refuse; $(#[$doc])* $name: "b {refuse}" }
    };
}

/// rt_sigreturn(2), number 139, to which a handler returns.
///
/// # Safety
/// The kernel alone makes a handler return here.
#[unsafe(naked)]
pub unsafe extern "C" fn restorer() {
    core::arch::naked_asm!("mov x8, 139", "svc 0")
}
