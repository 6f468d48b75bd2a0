//! The code that is timed. A test disassembles each loop and checks that it has its benchmark's instruction as often as stated, and no other
//! that matters.

use tollgate_arch::architecture::Architecture;
pub use tollgate_arch::frame::{LongLoop, LoopContext, run_empty};
use tollgate_arch::{compat, frame};

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
        /// The measured instruction, as in [`Timed::instruction`].
        instruction: &'static str,
        /// How often the loop holds it: once for every operation of an iteration.
        times: usize,
    },
    /// A loop with an inner loop, or one that waits for another thread.
    Together {
        /// The loop.
        code: LongLoop,
        /// The measured instruction, as above.
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

    /// Returns the measured instruction, as a disassembler of an architecture names it; `None` if it does not have the operation, or a
    /// whole operation is timed. Two names with `/` between them are those of x86-64 and arm64.
    pub fn instruction(&self, on: Architecture) -> Option<&'static str> {
        match self {
            Self::Loop { instruction, .. } | Self::Together { instruction, .. } => {
                self.why_absent(on).is_none().then(|| on.spelling(instruction))
            }
            Self::Whole(_) => None,
        }
    }

    /// Why an architecture does not have the operation; `None` if it has.
    pub fn why_absent(&self, on: Architecture) -> Option<&'static str> {
        match self {
            Self::Loop { code: TimedLoop::Long(code), .. } | Self::Together { code, .. } => {
                code.why_absent(on)
            }
            Self::Loop { code: TimedLoop::Compat(_), .. } => compat::why_absent(on),
            Self::Whole(_) => None,
        }
    }
}

/// The empty loop.
pub const EMPTY: TimedLoop = TimedLoop::Long(frame::EMPTY);
