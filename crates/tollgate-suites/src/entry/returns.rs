//! A system call at the bottom of calls, and the returns from them.
//!
//! A processor predicts the target of a RET by a stack of the latest calls (return stack buffer, return address predictor). The
//! kernel's own calls and returns use it too, and mitigations overwrite it at kernel entry or exit (retbleed's untraining, the filling
//! by SRSO's and RSB's mitigations: Documentation/admin-guide/hw-vuln). So the returns that follow a system call are
//! mispredicted, as many as the stack would have held, and so are the kernel's own where it was entered with a stack that the last call left
//! so. A loop with a bare SYSCALL in its body has none of them (depth 0); a program always has. All other benchmarks that enter the kernel
//! call their operation once, which is depth 1.

use super::results;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/return",
    operation: "The refused SYSCALL at the bottom of so many nested calls, then the returns; less the same calls and returns without it.",
    avoid: "Do more in each call. The returns after a kernel entry are mispredicted, so a program pays more than an inline SYSCALL costs; inlined wrappers have fewer returns.",
    source: "AMD APM vol. 2 and Intel SDM vol. 3, return predictors; Linux Documentation/admin-guide/hw-vuln/{srso,spectre}.rst",
    crosses: &[Call, KernelEntry, SystemCall, KernelCode],
    timed: |params| timed(number(params, "depth")).0,
    cases: |_| each("depth", &[0, 1, 8, 24]),
    in_everything: |params, _| [0, 8].contains(&number(params, "depth")),
    baseline_params: |_| Some(params(&[("depth", 0.into())])),
    kind: Kind::Instance(|_, params, _| {
        let (with, without) = timed(number(params, "depth"));
        let returns = Loop::without_context(with, results::refused)?;
        Ok(match without {
            Some(without) => returns.less(without)?,
            None => returns,
        }
        .here())
    }),
    ..PLAIN
};

/// The loop of a depth, and the same without the system call; none where the empty loop makes its calls.
fn timed(depth: u64) -> (Timed, Option<LongLoop>) {
    let below = |with, without| (Timed::once("call", TimedLoop::Long(with)), Some(without));
    match depth {
        0 => (Timed::once("syscall", TimedLoop::Long(inline)), None),
        8 => below(entered_at_8, returned_from_8),
        24 => below(entered_at_24, returned_from_24),
        _ => (REFUSED_CALL, None),
    }
}

timed_loop! {
    /// No call and no return: what no program does.
    inline: "mov rax, -1", "syscall"
}

timed_loop! {
    /// Eight calls, each by another instruction, to a SYSCALL.
    entered_at_8: "call 4f"; after "4:", ".rept 7", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "syscall", "ret"
}

timed_loop! {
    /// Eight calls.
    returned_from_8: "call 4f"; after "4:", ".rept 7", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "ret"
}

timed_loop! {
    /// Twenty-four calls to a SYSCALL: fewer than the stacks of current processors hold (32), more than those of older ones (16).
    entered_at_24: "call 4f"; after "4:", ".rept 23", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "syscall", "ret"
}

timed_loop! {
    /// Twenty-four calls.
    returned_from_24: "call 4f"; after "4:", ".rept 23", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "ret"
}

/// The loop of a depth, and the same without the system call, for the test that disassembles both.
#[cfg(test)]
pub(crate) fn loops(depth: u64) -> Option<(TimedLoop, TimedLoop)> {
    match timed(depth) {
        (Timed::Loop { code, .. }, Some(without)) => Some((code, TimedLoop::Long(without))),
        _ => None,
    }
}
