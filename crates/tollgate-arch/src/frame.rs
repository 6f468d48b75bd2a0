//! Timed loops of instructions. All have the same frame, so that the empty loop measures the overhead of every other. They are naked
//! functions.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::architecture::{Architecture, HERE};
use crate::chosen::frame::{CONTEXT, PLUS};
use crate::timed_loop;

/// A loop's context, eight words that `r13` or `x20` points to: the loop's parameters, and last the operation's result.
#[repr(C, align(64))]
#[derive(Debug, Clone, Default)]
pub struct LoopContext {
    /// For the loop's own use; the loop's documentation names each word.
    pub words: [u64; 7],
    /// `rax` or `x0` after the last iteration.
    pub result: u64,
}

/// A loop in 64-bit code, written with [`timed_loop!`](crate::timed_loop).
#[derive(Clone, Copy)]
pub struct LongLoop {
    entry: unsafe extern "C" fn(iterations: u64, context: *mut LoopContext),
    uses_context: bool,
    is_called: bool,
    /// The architecture that does not have the loop, and why.
    absent: Option<(Architecture, &'static str)>,
}

impl LongLoop {
    /// Used by `timed_loop!`: the function and its instructions. The context's register may only be stored, or be an address within
    /// the eight words.
    ///
    /// # Safety
    /// `entry` must hold these instructions in the frame of every loop. If they do not use that register, they must be sound to run any
    /// number of times, in any state of the process.
    #[doc(hidden)]
    pub const unsafe fn written(
        entry: unsafe extern "C" fn(u64, *mut LoopContext),
        instructions: &[&str],
        is_called: bool,
    ) -> Self {
        let uses_context = uses_words(instructions, size_of::<LoopContext>());
        Self { entry, uses_context, is_called, absent: None }
    }

    /// Used by `timed_loop!`: an operation that this architecture does not have, and why.
    #[doc(hidden)]
    pub const fn absent(is_called: bool, why: &'static str) -> Self {
        Self { entry: no_loop, uses_context: false, is_called, absent: Some((HERE, why)) }
    }

    /// Used by `timed_loop!`: this loop, which another architecture does not have.
    #[doc(hidden)]
    pub const fn absent_on(self, other: Architecture, why: Option<&'static str>) -> Self {
        match why {
            Some(why) => Self { absent: Some((other, why)), ..self },
            None => self,
        }
    }

    /// Why an architecture does not have the operation. If it is this one, the loop must not be run.
    pub fn why_absent(self, on: Architecture) -> Option<&'static str> {
        self.absent.filter(|(without, _)| *without == on).map(|(_, why)| why)
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
    /// This architecture must have the loop. The context must have what the loop's documentation says, and what it points to must live.
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

/// Ends the process, so that a loop that does not exist never yields a result.
unsafe extern "C" fn no_loop(_: u64, _: *mut LoopContext) {
    std::process::abort()
}

/// Ends the process, as above.
#[doc(hidden)]
pub unsafe extern "C" fn no_contending_loop(_: *mut Side) {
    std::process::abort()
}

/// Whether these instructions use the context's register. They may only store it or use it as an address: `[r13]` or `[r13 + N]`,
/// `[x20]`, `[x20, #N]` or the sum of `add xN, x20, #N`, where the eight bytes from `N` on lie below `limit`.
pub const fn uses_words(instructions: &[&str], limit: usize) -> bool {
    let mut uses = false;
    let mut line = 0;
    while line < instructions.len() {
        let text = instructions[line].as_bytes();
        let is_sum =
            CONTEXT[0] == b'x' && text.len() > 3 && text[0] == b'a' && text[1] == b'd' && text[2] == b'd';
        let mut at = 0;
        while at + 3 <= text.len() {
            if is_at(text, at, CONTEXT) {
                uses = true;
                let is_stored = at + 3 == text.len() && at > 1 && text[at - 2] == b',';
                if is_stored {
                    break;
                }
                assert!(
                    at > 0 && (text[at - 1] == b'[' || is_sum),
                    "it may only be an address, or be stored"
                );
                let (mut offset, mut end) = (0, at + 3);
                if is_at(text, end, PLUS) {
                    end += 3;
                    while end < text.len() && text[end].is_ascii_digit() {
                        offset = offset * 10 + (text[end] - b'0') as usize;
                        end += 1;
                    }
                }
                let is_end = if is_sum { end == text.len() } else { end < text.len() && text[end] == b']' };
                assert!(is_end, "only a number may be added to it");
                assert!(offset + 8 <= limit, "the offset is not within the loop's words");
            }
            at += 1;
        }
        line += 1;
    }
    uses
}

const fn is_at(text: &[u8], at: usize, word: &[u8; 3]) -> bool {
    at + 3 <= text.len() && text[at] == word[0] && text[at + 1] == word[1] && text[at + 2] == word[2]
}

timed_loop! {
    /// The frame of every 64-bit loop, with an empty body.
    empty_long:
}

timed_loop! {
    /// The frame of loops that call their body.
    empty_called: called
}

/// The empty loop.
pub const EMPTY: LongLoop = empty_long;

/// Runs the empty loop, which writes only the result of a context.
#[inline(always)]
pub fn run_empty(iterations: u64, context: &mut LoopContext) {
    // SAFETY: the loop uses no word of its context but the result.
    unsafe { empty_long.run(iterations, context) }
}

/// The data of another thread's loop, at the context's register, on its own pairs of cache lines: a processor may fetch lines in pairs.
#[repr(C, align(128))]
pub struct Side {
    /// Free for the loop.
    pub words: [u64; WORDS],
    /// The loop's first and last time stamp.
    pub stamps: [u64; 2],
    /// Iterations that took more ticks than this are logged.
    pub long: u64,
    /// How many iterations took longer.
    pub long_iterations: u64,
    /// How many iterations have ended.
    pub progress: PaddedWord,
    /// Ends the loop when it is not 0.
    pub stop: PaddedWord,
    /// The end and the ticks of the latest long iterations, a ring buffer.
    pub log: [[u64; 2]; LOG],
}

/// Words of a side that its loop may use.
pub const WORDS: usize = 12;

/// Entries of the log: a power of two.
pub const LOG: usize = 64;

impl Default for Side {
    fn default() -> Self {
        Self {
            words: [0; WORDS],
            stamps: [0; 2],
            long: 0,
            long_iterations: 0,
            progress: PaddedWord::default(),
            stop: PaddedWord::default(),
            log: [[0; 2]; LOG],
        }
    }
}

impl Side {
    /// Returns how many iterations its loop has completed.
    pub fn iterations(&self) -> u64 {
        self.progress.0.load(SeqCst)
    }
}

/// A word with a pair of cache lines to itself.
#[repr(C, align(128))]
#[derive(Default)]
pub struct PaddedWord(pub AtomicU64);

/// The loop of another thread, written with `contending_loop!`. It runs until its stop word is set.
pub type ContendingLoop = unsafe extern "C" fn(*mut Side);

/// The reason in `none "reason"`; nothing for instructions.
#[doc(hidden)]
#[macro_export]
macro_rules! why_none {
    (none $why:literal) => {
        Some($why)
    };
    ($($instructions:tt)*) => {
        None
    };
}

/// Returns the addresses of two symbols that the program's own assembly defines.
#[macro_export]
macro_rules! addresses {
    ($begin:expr, $end:expr) => {{
        unsafe extern "C" {
            #[link_name = $begin]
            static BEGIN: u8;
            #[link_name = $end]
            static END: u8;
        }
        // Takes the addresses only; nothing is read.
        ((&raw const BEGIN) as usize, (&raw const END) as usize)
    }};
}

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

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::contending_loop;

    timed_loop! {
        /// Adds 3 to word 1.
        add: "add qword ptr [r13 + 8], 3", "mov rax, [r13 + 8]";
        aarch64 "ldr x0, [x20, #8]", "add x0, x0, 3", "str x0, [x20, #8]"
    }

    timed_loop! {
        of_x86: "nop"; aarch64 none "why arm64 has none"
    }

    timed_loop! {
        of_x86_called: called "nop"; aarch64 none "why arm64 calls none"
    }

    timed_loop! {
        of_arm64: none "why x86-64 has none"; aarch64 first "nop"; "nop"
    }

    timed_loop! {
        of_both: "nop"; after "nop"; aarch64 "nop"; after "nop"
    }

    #[test]
    fn each_architecture_knows_why_the_other_has_no_loop() {
        let why = |code: LongLoop| [Architecture::X86_64, Architecture::Arm64].map(|on| code.why_absent(on));
        assert_eq!(why(of_x86), [None, Some("why arm64 has none")]);
        assert_eq!(why(of_x86_called), [None, Some("why arm64 calls none")]);
        assert_eq!(why(of_arm64), [Some("why x86-64 has none"), None]);
        assert_eq!([of_both, clock, EMPTY].map(why), [[None; 2]; 3]);
    }

    timed_loop! {
        /// No call has the number -1.
        refused: called "mov rax, -1", "syscall"; aarch64 "mov x8, -1", "svc 0"
    }

    timed_loop! {
        /// Four of the six arguments, of each kind: CLOCK_MONOTONIC (1) into words 2 and 3; then 0, and a number that is not used.
        clock: called call SYS_clock_gettime([0], (16), 0, 7)
    }

    #[test]
    fn a_call_has_its_arguments() {
        let mut context = LoopContext { words: [1, 0, 0, u64::MAX, 0, 0, 0], result: 1 };
        // SAFETY: the kernel writes words 2 and 3.
        unsafe { clock.run(2, &mut context) };
        assert_eq!(context.result, 0);
        assert!(context.words[2] > 0 && context.words[3] < 1_000_000_000, "{:?}", context.words);
        assert!(clock.uses_context() && clock.is_called());
    }

    #[test]
    fn a_loop_makes_its_iterations_and_leaves_the_last_result() {
        let mut context = LoopContext { words: [0, 100, 0, 0, 0, 0, 7], result: 0 };
        // SAFETY: the words are the loop's.
        unsafe { add.run(5, &mut context) };
        assert_eq!((context.words, context.result), ([0, 115, 0, 0, 0, 0, 7], 115));
        run_empty(3, &mut context);
        assert_eq!((context.words[1], context.result), (115, 0));
        // SAFETY: the loops use no words.
        unsafe { refused.run(2, &mut context) };
        assert_eq!(context.result.cast_signed(), -i64::from(libc::ENOSYS));
        // SAFETY: as above.
        unsafe { refused.empty().run(2, &mut context) };
        assert_eq!([add.uses_context(), refused.uses_context(), refused.is_called()], [true, false, true]);
    }

    contending_loop! {
        /// Adds 1 to word 2, and sets the stop word at 10.
        ten:
            "inc qword ptr [r13 + 16]", "cmp qword ptr [r13 + 16], 10", "jb 3f",
            "lea rcx, [r13 + 88]", "mov qword ptr [rcx + 168], 1", "3:";
        aarch64
            "ldr x1, [x20, #16]", "add x1, x1, 1", "str x1, [x20, #16]", "cmp x1, 10", "b.lo 3f",
            "add x2, x20, #88", "mov x1, 1", "str x1, [x2, 168]", "3:"
    }

    #[test]
    fn a_contending_loop_ends_after_the_iteration_that_finds_its_stop_word_set() {
        // Each iteration is longer than no tick at all, or takes none.
        let mut side = Side { long: 0, ..Side::default() };
        // SAFETY: the loop uses its side alone, and ends itself.
        unsafe { ten(&mut side) };
        assert_eq!((side.words[2], side.iterations(), side.stop.0.load(Relaxed)), (10, 10, 1));
        assert!(side.stamps[0] > 0 && side.stamps[0] <= side.stamps[1] && side.long_iterations <= 10);
        let logged: u64 = side.log.iter().map(|[_, ticks]| ticks).sum();
        assert_eq!(logged, side.stamps[1] - side.stamps[0]);
    }

    #[test]
    fn the_loops_offsets_are_the_fields_offsets() {
        assert_eq!(std::mem::offset_of!(Side, stamps), 96);
        assert_eq!(std::mem::offset_of!(Side, long), 112);
        assert_eq!(std::mem::offset_of!(Side, long_iterations), 120);
        assert_eq!((std::mem::offset_of!(Side, log), LOG), (384, 64));
        assert_eq!(std::mem::offset_of!(Side, progress), 128);
        assert_eq!(std::mem::offset_of!(Side, stop), 256);
    }
}
