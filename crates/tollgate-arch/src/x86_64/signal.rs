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
}

/// rt_sigreturn(2), number 15, to which a handler returns.
///
/// # Safety
/// The kernel alone makes a handler return here.
#[unsafe(naked)]
pub unsafe extern "C" fn restorer() {
    core::arch::naked_asm!("mov eax, 15", "syscall")
}

/// Offset of the mask in a ucontext.
pub const FRAME_MASK: usize = STATE + 9 * 8;

// The kernel's struct ucontext (include/uapi/asm-generic/ucontext.h, arch/x86/include/uapi/asm/sigcontext.h): flags,
// link and stack, then 23 registers and the address of the floating-point state, 8 reserved words, the mask.
const UCONTEXT: usize = 304;
const R14: usize = 40 + 6 * 8;
const RAX: usize = 40 + 13 * 8;
const STATE: usize = 40 + 23 * 8;

/// Copies a signal's ucontext and its floating-point state, so that a return from the copy has 1 in r14 and `result` in rax. Returns
/// false if that is not possible.
///
/// # Safety
/// The kernel must have made the context. The copy must have `room` and be aligned to 64.
pub unsafe fn copy_frame(context: *const u8, copy: *mut u8, room: usize, result: u64) -> bool {
    // struct _fpx_sw_bytes: the kernel's description of the state, in bytes that the processor does not use.
    const SOFTWARE: usize = 464;
    const MAGIC: u32 = 0x4650_5853;
    /// Size of the state with FXSAVE only.
    const LEGACY: usize = 512;
    /// The offset of the state's copy: XRSTOR needs it aligned to 64.
    const COPY_OF_STATE: usize = 512;
    // SAFETY: by the caller's contract; by the check here, the copy also has room for the state.
    unsafe {
        let state = context.add(STATE).cast::<*const u8>().read();
        if state.is_null() {
            return false;
        }
        let software = state.add(SOFTWARE).cast::<u32>();
        let length = if software.read() == MAGIC { software.add(1).read() as usize } else { LEGACY };
        if length > room.saturating_sub(COPY_OF_STATE) {
            return false;
        }
        copy.copy_from_nonoverlapping(context, UCONTEXT);
        copy.add(COPY_OF_STATE).copy_from_nonoverlapping(state, length);
        copy.add(STATE).cast::<*mut u8>().write(copy.add(COPY_OF_STATE));
        copy.add(R14).cast::<u64>().write(1);
        copy.add(RAX).cast::<u64>().write(result);
    }
    true
}
