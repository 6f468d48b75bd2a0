//! The fast alternative to an emulated instruction: a call of the emulation.

use super::{imul::TEN, opcode::twenty_seven, power::power};
use crate::prelude::*;

timed_loop! {
    /// Word 0: the function, in the C calling convention.
    ten_calls: ".rept 10", "mov edi, 3", "mov esi, 3", "call [r13]", ".endr";
    aarch64 ".rept 10", "mov w0, 3", "mov w1, 3", "ldr x9, [x20]", "blr x9", ".endr"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/branch",
    operation: "One call of the emulating function, ten in a row: the same power by a call instead of a trap.",
    avoid: "Nothing to avoid: a call is the alternative to a trap.",
    source: "Intel SDM vol. 2, CALL",
    crosses: &[UserCode, Call, StoreForwarding],
    baseline: Baseline::Benchmark("traps/imul"),
    timed: |_| Timed::Loop { code: TimedLoop::Long(ten_calls), instruction: "call/blr", times: TEN as usize },
    kind: Kind::Instance(|timed, _, _| {
        let words = [power as extern "C" fn(u32, u32) -> u32 as usize as u64, 0, 0, 0, 0, 0, 0];
        // SAFETY: the function takes two numbers and touches no memory.
        let timed = unsafe { Loop::new(timed, words, None, twenty_seven) }?;
        Ok(timed.here().with_ops(TEN))
    }),
    ..PLAIN
};
