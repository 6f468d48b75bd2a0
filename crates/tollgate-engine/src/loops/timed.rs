//! Timed loops of instructions. All have the same frame, so that the empty loop measures the overhead of every other. They are naked
//! functions. A test disassembles each and checks that it has its benchmark's instruction as often as stated, and no other that
//! matters.

/// The eight words at `r13` of a loop: its parameters, and last the operation's result.
#[repr(C, align(64))]
#[derive(Debug, Clone, Default)]
pub struct LoopContext {
    /// For the loop's own use; the loop's documentation names each word.
    pub words: [u64; 7],
    /// `rax` after the last iteration.
    pub result: u64,
}

/// A loop in 64-bit code, written with [`timed_loop!`](crate::timed_loop).
#[derive(Clone, Copy)]
pub struct LongLoop {
    entry: unsafe extern "C" fn(iterations: u64, context: *mut LoopContext),
    uses_context: bool,
    is_called: bool,
}

impl LongLoop {
    /// Is for `timed_loop!`: the function and its instructions. `r13` may only be used as `[r13 + N]` within the eight words.
    ///
    /// # Safety
    /// `entry` must hold these instructions in the frame of every loop. Without `r13`, they must be sound to run any number of times,
    /// in any state of the process.
    #[doc(hidden)]
    pub const unsafe fn written(
        entry: unsafe extern "C" fn(u64, *mut LoopContext),
        instructions: &[&str],
        is_called: bool,
    ) -> Self {
        Self { entry, uses_context: uses_words(instructions, size_of::<LoopContext>()), is_called }
    }

    /// Whether each iteration calls its body, which returns.
    pub fn is_called(self) -> bool {
        self.is_called
    }

    /// Returns the loop without its operation, which is subtracted.
    pub fn empty(self) -> Self {
        if self.is_called { empty_called } else { empty_long }
    }

    /// Runs this many iterations, at least 1 (0 would mean 2^64).
    ///
    /// # Safety
    /// The context must have what the loop's documentation says, and what it points to must live.
    #[inline(always)]
    pub unsafe fn run(self, iterations: u64, context: *mut LoopContext) {
        // SAFETY: by the caller's contract.
        unsafe { (self.entry)(iterations, context) }
    }

    /// Whether it uses any word of its context except the result.
    pub fn uses_context(self) -> bool {
        self.uses_context
    }

    /// Returns the address of its first instruction.
    pub fn address(self) -> usize {
        self.entry as usize
    }
}

/// Whether these instructions use `r13`. It must be stored, or be `[r13]` or `[r13 + N]`, with eight bytes from `N` on below
/// `limit`.
pub const fn uses_words(instructions: &[&str], limit: usize) -> bool {
    let mut uses = false;
    let mut line = 0;
    while line < instructions.len() {
        let text = instructions[line].as_bytes();
        let mut at = 0;
        while at + 3 <= text.len() {
            if text[at] == b'r' && text[at + 1] == b'1' && text[at + 2] == b'3' {
                uses = true;
                let is_stored = at + 3 == text.len() && at > 1 && text[at - 2] == b',';
                if is_stored {
                    break;
                }
                assert!(at > 0 && text[at - 1] == b'[', "r13 may only be an address, or be stored");
                let (mut offset, mut end) = (0, at + 3);
                if text[end] == b' ' {
                    assert!(
                        text[end + 1] == b'+' && text[end + 2] == b' ',
                        "only an offset may be added to r13"
                    );
                    end += 3;
                    while text[end].is_ascii_digit() {
                        offset = offset * 10 + (text[end] - b'0') as usize;
                        end += 1;
                    }
                }
                assert!(text[end] == b']', "only a number may be added to r13");
                assert!(offset + 8 <= limit, "the offset is not within the loop's words");
            }
            at += 1;
        }
        line += 1;
    }
    uses
}

/// A loop that can be timed.
#[derive(Clone, Copy)]
pub enum TimedLoop {
    /// 64-bit code, called here.
    Long(LongLoop),
    /// 32-bit code, position-independent, copied into the 32-bit program. It has the iterations in `edi`, the address of
    /// `__kernel_vsyscall` (or 0) in `esi` and the result in `eax`, and returns with `ret`.
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
    /// Makes a loop with one operation per iteration, by this instruction.
    pub const fn once(instruction: &'static str, code: TimedLoop) -> Self {
        Self::Loop { code, instruction, times: 1 }
    }
}

/// Writes a loop in 64-bit code: `timed_loop! { /// doc … name: "instruction", … }`. `; after "label:", …` may follow for code
/// that the loop calls, and `first "instruction", …;` may precede the body for code that runs once, before the loop.
///
/// In the body `r13` is the context and `r12` the counter, which must be kept; all else is free. Offsets from `r13` are checked
/// at compile time. A loop that does not use `r13` must be sound to run in any process: it can be made an instance without
/// `unsafe`, see [`Loop::without_context`](crate::Loop::without_context).
///
/// With `called` before the body, each iteration calls it and it returns, like a function of a program; the empty loop to
/// subtract makes the same call. Everything that enters the kernel is written so. Kernels with safe returns (SRSO), and
/// processors that predict returns by a return stack, give the kernel's own returns two latencies: one for a loop without calls,
/// whose iterations all leave the predictors alike, and one for code that calls and returns, as all programs do.
#[macro_export]
macro_rules! timed_loop {
    ($(#[$doc:meta])* $name:ident: called $($body:literal),*) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: true; "call 9f"; after ".p2align 6", "9:", $($body,)* "ret"
        }
    };
    ($(#[$doc:meta])* $name:ident: $(first $($first:literal),+;)? $($body:literal),* $(; after $($after:literal),+)?) => {
        $crate::timed_loop! {
            @ $(#[$doc])* $name: false; $(first $($first),+;)? $($body),* $(; after $($after),+)?
        }
    };
    (@ $(#[$doc:meta])* $name:ident: $called:literal; $(first $($first:literal),+;)? $($body:literal),* $(; after $($after:literal),+)?) => {
        $(#[$doc])*
        #[allow(non_upper_case_globals)] // It stands for a function.
        const $name: $crate::timed::LongLoop = {
            #[unsafe(naked)]
            unsafe extern "C" fn entry(iterations: u64, context: *mut $crate::LoopContext) {
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
            const INSTRUCTIONS: &[&str] = &[$($($first,)+)? $($body,)* $($($after,)+)?];
            // SAFETY: these are its instructions. One that uses no `r13` must be sound in any process by the macro's contract.
            unsafe { $crate::timed::LongLoop::written(entry, INSTRUCTIONS, $called) }
        };
    };
}
pub use crate::timed_loop;

/// Returns the bytes between two symbols that the program's own assembly defines in read-only data.
#[macro_export]
macro_rules! bytes_between {
    ($begin:expr, $end:expr) => {{
        unsafe extern "C" {
            #[link_name = $begin]
            static BEGIN: u8;
            #[link_name = $end]
            static END: u8;
        }
        let (begin, end) = (&raw const BEGIN, &raw const END);
        // SAFETY: both symbols delimit one run of bytes in this program's read-only data.
        unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) }
    }};
}

/// Writes a loop in 32-bit code as bytes between two symbols: `compat_loop! { /// doc … name = "symbol": "instruction", … }`. In
/// the body `edi` counts down and `esi` is `__kernel_vsyscall`; both must be kept.
#[macro_export]
macro_rules! compat_loop {
    ($(#[$doc:meta])* $name:ident = $symbol:literal: $($body:literal),*) => {
        core::arch::global_asm!(
            concat!(".pushsection .rodata.", $symbol, ", \"a\", @progbits"),
            ".code32",
            concat!($symbol, "_begin:"),
            "xor eax, eax",
            // A data section is padded with zeros by default, which are not NOPs.
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
            $crate::bytes_between!(concat!($symbol, "_begin"), concat!($symbol, "_end"))
        }
    };
}
pub use crate::compat_loop;

timed_loop! {
    /// The frame of every 64-bit loop, with an empty body.
    empty_long:
}

timed_loop! {
    /// The frame of loops that call their body.
    empty_called: called
}

/// The empty loop.
pub const EMPTY: TimedLoop = TimedLoop::Long(empty_long);

/// Runs the empty loop, which writes only the result of a context.
#[inline(always)]
pub fn run_empty(iterations: u64, context: &mut LoopContext) {
    // SAFETY: the loop uses no word of its context but the result.
    unsafe { empty_long.run(iterations, context) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_used_by_their_offset_below_the_limit() {
        assert!(!uses_words(&["mov rax, -1", "syscall"], 64));
        assert!(uses_words(&["mov rax, -1", "lea rsi, [r13 + 56]"], 64));
        for wrong in [
            "mov rax, [r13 + 57]",
            "mov r13, rax",
            "inc r13",
            "mov rax, [r13 + rcx]",
            "mov rax, [r13 - 8]",
            "push r13",
        ] {
            assert!(std::panic::catch_unwind(|| uses_words(&[wrong], 64)).is_err(), "{wrong}");
        }
    }
}
