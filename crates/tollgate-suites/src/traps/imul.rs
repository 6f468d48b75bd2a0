//! The baseline of the published experiment: a valid instruction.

use crate::prelude::*;

timed_loop! {
    /// `imul ecx, eax`, each with both operands reloaded.
    ten_products:
        ".rept 10", "mov eax, 3", "mov ecx, 3", ".byte 0x0f, 0xaf, 0xc8", ".endr";
    aarch64 ".rept 10", "mov w0, 3", "mov w1, 3", "mul w1, w0, w1", ".endr"
}

/// Operations in an iteration, as published.
pub(super) const TEN: u64 = 10;

/// Walter Zhou, "Simulate Invalid Opcode 的性能代价分析": ten times the two operands and the instruction between two readings
/// of the counter. On Linux 2.6.20 and a Celeron of 1.8 GHz this one took 11.5 cycles, the emulated one 1949.
pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/imul",
    operation: "One multiplication with its two operands loaded, ten in a row: the baseline of an emulated instruction.",
    avoid: "Nothing to avoid: emulated instructions are compared with this.",
    source: "Intel SDM vol. 2, IMUL",
    crosses: &[UserCode],
    timed: |_| Timed::Loop {
        code: TimedLoop::Long(ten_products),
        instruction: "imul/mul",
        times: TEN as usize,
    },
    kind: Kind::Instance(|timed, _, _| Ok(Loop::without_context(timed, checks::any)?.here().with_ops(TEN))),
    ..PLAIN
};
