//! A system call at the bottom of nested calls, and the returns from them.
//!
//! A processor predicts the target of a RET from a stack of the latest calls (return stack buffer, return address predictor). The
//! kernel's own calls and returns use it too, and mitigations overwrite it at kernel entry or exit (retbleed's untraining, the
//! filling by SRSO's and RSB's mitigations: Documentation/admin-guide/hw-vuln). So the returns that follow a system call are
//! mispredicted, up to the number that the stack would have held. The kernel's own returns are mispredicted too if the last call
//! left the stack in that state. A loop with a bare SYSCALL in its body has no such returns (depth 0); a program always has. All
//! other benchmarks that enter the kernel call their operation once, which is depth 1.

use super::results;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/return",
    operation: "The refused call of entry/syscall at the bottom of this many nested calls, then the returns; less the same calls and returns without it.",
    avoid: "Do more in each call. The returns after a kernel entry are mispredicted, so a program pays more than an inline SYSCALL costs; inlined wrappers have fewer returns.",
    source: "AMD APM vol. 2 and Intel SDM vol. 3, return predictors; Linux Documentation/admin-guide/hw-vuln/{srso,spectre}.rst",
    crosses: &[Call, KernelEntry, SystemCall, KernelCode],
    timed: |params| timed(number(params, "depth")).0,
    cases: |_| each("depth", &[0, 1, 8, 24]),
    in_everything: |params, _| [0, 8].contains(&number(params, "depth")),
    baseline: Baseline::Case(|_| Some(params(&[("depth", 0.into())]))),
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

/// Returns the loop of a depth, and the same loop without the system call; `None` if the empty loop makes the same calls.
fn timed(depth: u64) -> (Timed, Option<LongLoop>) {
    let below = |with, without| (Timed::once("call/bl", TimedLoop::Long(with)), Some(without));
    match depth {
        0 => (Timed::once("syscall/svc", TimedLoop::Long(inline)), None),
        8 => below(entered_at_8, returned_from_8),
        24 => below(entered_at_24, returned_from_24),
        1 => (REFUSED_CALL, None),
        _ => (NOT_TIMED, None),
    }
}

timed_loop! {
    /// Neither a call nor a return, unlike any real program.
    inline: "mov rax, -1", "syscall"; aarch64 "mov x8, -1", "svc 0"
}

timed_loop! {
    /// Eight nested calls, each by its own instruction, with a SYSCALL at the bottom.
    entered_at_8: "call 4f"; after "4:", ".rept 7", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "syscall", "ret";
        aarch64 "bl 4f"; after "4:", ".rept 7", "stp x29, x30, [sp, -16]!", "bl 5f", "ldp x29, x30, [sp], 16", "ret", "5:",
        ".endr", "mov x8, -1", "svc 0", "ret"
}

timed_loop! {
    returned_from_8: "call 4f"; after "4:", ".rept 7", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "ret";
        aarch64 "bl 4f"; after "4:", ".rept 7", "stp x29, x30, [sp, -16]!", "bl 5f", "ldp x29, x30, [sp], 16", "ret", "5:",
        ".endr", "mov x8, -1", "ret"
}

timed_loop! {
    /// Twenty-four nested calls to a SYSCALL: fewer than current processors' stacks hold (32), more than older ones' (16).
    entered_at_24: "call 4f"; after "4:", ".rept 23", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "syscall", "ret";
        aarch64 "bl 4f"; after "4:", ".rept 23", "stp x29, x30, [sp, -16]!", "bl 5f", "ldp x29, x30, [sp], 16", "ret", "5:",
        ".endr", "mov x8, -1", "svc 0", "ret"
}

timed_loop! {
    returned_from_24: "call 4f"; after "4:", ".rept 23", "call 5f", "ret", "5:", ".endr", "mov rax, -1", "ret";
        aarch64 "bl 4f"; after "4:", ".rept 23", "stp x29, x30, [sp, -16]!", "bl 5f", "ldp x29, x30, [sp], 16", "ret", "5:",
        ".endr", "mov x8, -1", "ret"
}

#[cfg(test)]
pub(crate) fn loops(depth: u64) -> Option<(TimedLoop, TimedLoop)> {
    match timed(depth) {
        (Timed::Loop { code, .. }, Some(without)) => Some((code, TimedLoop::Long(without))),
        _ => None,
    }
}
