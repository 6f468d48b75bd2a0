//! Timed loops, written in instructions. All have the same frame, so that the empty loop measures the overhead of
//! every other.
//!
//! Timed loops are naked functions. A test disassembles each registered one and finds the instruction that
//! its benchmark names, as often as it says, and no other that matters.

/// The eight words at `r13` of a loop: its parameters, and in the last one the operation's result.
#[repr(C, align(64))]
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// For the loop's own use; the loop's documentation names each word.
    pub words: [u64; 7],
    /// `rax` after the last iteration.
    pub result: u64,
}

/// The entry point of a loop in 64-bit code.
///
/// `iterations` is at least 1 (0 would mean 2^64).
pub type LongLoop = unsafe extern "C" fn(iterations: u64, context: *mut Context);

/// A loop that can be timed.
#[derive(Clone, Copy)]
pub enum TimedLoop {
    /// 64-bit code, called here.
    Long(LongLoop),
    /// 32-bit code, position-independent, copied into the 32-bit program: iterations in `edi`, the address of
    /// `__kernel_vsyscall` (or 0) in `esi`, the result in `eax`, back with `ret`.
    Compat(fn() -> &'static [u8]),
}

/// The timed part of a case.
#[derive(Clone, Copy)]
pub enum Timed {
    /// A loop of a few instructions.
    Loop {
        /// The loop.
        code: TimedLoop,
        /// The measured instruction, as a disassembler names it.
        instruction: &'static str,
        /// How often the loop holds it: once for every operation of an iteration.
        times: usize,
    },
    /// A loop with an inner loop, or one that waits for another thread.
    Together {
        /// The loop.
        code: LongLoop,
        /// The measured instruction, as a disassembler names it.
        instruction: &'static str,
        /// How often the loop holds it with memory to write to.
        times: usize,
    },
    /// Whole operations through this interface, such as `fork(2)`, each too long for the loop overhead to matter.
    Whole(&'static str),
}

impl Timed {
    /// A loop with one operation in an iteration, by this instruction.
    pub const fn once(instruction: &'static str, code: TimedLoop) -> Self {
        Self::Loop { code, instruction, times: 1 }
    }
}

/// Writes a loop in 64-bit code: `timed_loop! { /// doc … name: "instruction", … }`, optionally followed by `; after
/// "label:", …` for code that the loop calls, and with `first "instruction", …;` before the body for code that runs
/// once, ahead of the loop.
///
/// In the body `r13` is the context and `r12` the counter, which must be kept; all else is free.
#[macro_export]
macro_rules! timed_loop {
    ($(#[$doc:meta])* $name:ident: $(first $($first:literal),+;)? $($body:literal),* $(; after $($after:literal),+)?) => {
        $(#[$doc])*
        #[unsafe(naked)]
        unsafe extern "C" fn $name(iterations: u64, context: *mut $crate::Context) {
            core::arch::naked_asm!(
                // Six pushes and 8 bytes keep the stack aligned to 16 for loops that call.
                "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15", "sub rsp, 8",
                "mov r12, rdi",
                "mov r13, rsi",
                "xor eax, eax",
                $($($first,)+)?
                // A loop that straddles a fetch window would change its time from build to build.
                ".p2align 6",
                "2:",
                $($body,)*
                "dec r12",
                "jnz 2b",
                "mov [r13 + 56], rax",
                "add rsp, 8", "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
                "ret",
                $($($after,)+)?
            )
        }
    };
}
pub use crate::timed_loop;

/// Writes a loop in 32-bit code as bytes between two symbols: `compat_loop! { /// doc … name = "symbol":
/// "instruction", … }`. In the body `edi` counts down, `esi` is `__kernel_vsyscall`; both must be kept.
#[macro_export]
macro_rules! compat_loop {
    ($(#[$doc:meta])* $name:ident = $symbol:literal: $($body:literal),*) => {
        core::arch::global_asm!(
            concat!(".pushsection .rodata.", $symbol, ", \"a\", @progbits"),
            ".code32",
            concat!($symbol, "_begin:"),
            "xor eax, eax",
            // A data section is padded with zeros by default, which are no NOPs.
            ".balign 64, 0x90",
            "2:",
            $($body,)*
            "dec edi",
            "jnz 2b",
            "ret",
            concat!($symbol, "_end:"),
            ".code64",
            ".popsection",
        );
        $(#[$doc])*
        fn $name() -> &'static [u8] {
            unsafe extern "C" {
                #[link_name = concat!($symbol, "_begin")]
                static BEGIN: u8;
                #[link_name = concat!($symbol, "_end")]
                static END: u8;
            }
            let (begin, end) = (&raw const BEGIN, &raw const END);
            // SAFETY: both symbols delimit one run of bytes in this program's read-only data, defined
            // by the assembly right above.
            unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) }
        }
    };
}
pub use crate::compat_loop;

timed_loop! {
    /// The frame of every 64-bit loop, with an empty body.
    empty_long:
}

/// The empty loop.
pub const EMPTY: TimedLoop = TimedLoop::Long(empty_long);

/// The empty loop's entry point.
pub(super) const EMPTY_LONG: LongLoop = empty_long;
