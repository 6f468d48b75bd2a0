//! Timed loops: written in instructions, all of one shape, so that the empty one costs what the
//! frame of every other costs.

/// Eight words that a loop finds behind `r13`: what it needs to know, and in the last one what the
/// crossing returned.
#[repr(C, align(64))]
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The loop's own use; a loop says in its documentation which word holds what.
    pub words: [u64; 7],
    /// `rax` after the last iteration.
    pub result: u64,
}

/// The entry point of a loop in 64-bit code.
///
/// `iterations` is at least 1 (0 would go round 2^64 times).
pub type LongLoop = unsafe extern "C" fn(iterations: u64, context: *mut Context);

/// A loop to be timed.
#[derive(Clone, Copy)]
pub enum TimedLoop {
    /// 64-bit code, called here.
    Long(LongLoop),
    /// 32-bit code, position-independent, carried into the 32-bit program: iterations in `edi`, the
    /// address of `__kernel_vsyscall` (or 0) in `esi`, the result in `eax`, back with `ret`.
    Compat(fn() -> &'static [u8]),
}

/// What is timed in a case.
#[derive(Clone, Copy)]
pub enum Timed {
    /// A loop of a few instructions.
    Loop {
        /// The loop.
        code: TimedLoop,
        /// The instruction that makes the crossing, as a disassembler names it.
        instruction: &'static str,
        /// How often the loop holds it, once for every operation of an iteration.
        times: usize,
    },
    /// A loop of a few instructions that goes round within itself, or waits for what another thread does.
    Together {
        /// The loop.
        code: LongLoop,
        /// The instruction that is priced, as a disassembler names it.
        instruction: &'static str,
        /// How often the loop holds it with memory to write to.
        times: usize,
    },
    /// Whole operations, each too long for the frame around it to matter, through this interface: `fork(2)`.
    Whole(&'static str),
}

impl Timed {
    /// A loop that makes one crossing an iteration, by this instruction.
    pub const fn once(instruction: &'static str, code: TimedLoop) -> Self {
        Self::Loop { code, instruction, times: 1 }
    }
}

/// Writes a loop in 64-bit code: `timed_loop! { /// doc … name: "instruction", … }`, optionally
/// followed by `; after "label:", …` for code that the loop calls, and with `first "instruction", …;` before the
/// body for what is done once, ahead of the loop.
///
/// In the body `r13` is the context, `r12` counts down and must be left alone; all else is free.
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
                // A loop that straddles a fetch window costs differently from build to build.
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
            // A data section is padded with zeros, which are no instruction worth executing.
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
    /// The frame of every 64-bit loop with nothing in it.
    empty_long:
}

/// The empty loop.
pub const EMPTY: TimedLoop = TimedLoop::Long(empty_long);

/// The empty loop's entry point.
pub(super) const EMPTY_LONG: LongLoop = empty_long;
