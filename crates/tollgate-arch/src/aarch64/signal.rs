//! Signal handlers that are instructions.

/// Offset of the interrupted instruction's address in a ucontext: uc_mcontext begins at 176, and has the faulting address, 31
/// registers and the stack pointer before it (arch/arm64/include/uapi/asm/sigcontext.h).
pub const RIP: usize = 176 + 8 + 32 * 8;

/// Offset of the flags, which follow.
pub const EFLAGS: usize = RIP + 8;

/// Offsets of x0 and x1.
pub const OPERANDS: [usize; 2] = [176 + 8, 176 + 16];

/// Writes a handler from the instructions after `; aarch64`, as on x86-64. A handler with only x86-64's instructions refuses every
/// signal and is never installed, because this architecture does not have its loop either.
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
                // A body may leave this offset unused.
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
    // A handler without a body only counts, on both architectures.
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

/// Offset of the mask in a ucontext: flags, link and stack are before it.
pub const FRAME_MASK: usize = 40;

/// Copies a signal's ucontext, so that a return from the copy has 1 in x21 and `result` in x0. Returns false if that is not possible:
/// a state that does not fit lies elsewhere (EXTRA_MAGIC), and the record of v0 to v31 must be the first (struct sigcontext).
///
/// # Safety
/// The kernel must have made the context. The copy must have `room` and be aligned to 16.
pub unsafe fn copy_frame(context: *const u8, copy: *mut u8, room: usize, result: u64) -> bool {
    const RECORDS: usize = 464;
    const UCONTEXT: usize = RECORDS + 4096;
    const FPSIMD_MAGIC: u32 = 0x4650_8001;
    const EXTRA_MAGIC: u32 = 0x4558_5401;
    let mut at = RECORDS;
    while at + 8 <= UCONTEXT {
        // SAFETY: by the caller's contract; a record begins with its magic and its size.
        let [magic, size] = unsafe { context.add(at).cast::<[u32; 2]>().read() };
        if magic == 0 {
            break;
        }
        let is_first = at == RECORDS;
        if magic == EXTRA_MAGIC || size == 0 || is_first != (magic == FPSIMD_MAGIC) {
            return false;
        }
        at += size as usize;
    }
    if at == RECORDS || room < UCONTEXT {
        return false;
    }
    // SAFETY: as above.
    unsafe {
        copy.copy_from_nonoverlapping(context, UCONTEXT);
        copy.add(OPERANDS[0]).cast::<u64>().write(result);
        copy.add(OPERANDS[0] + 21 * 8).cast::<u64>().write(1);
    }
    true
}
