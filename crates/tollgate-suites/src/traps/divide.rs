use super::handler::{Handled, SIGNAL, counted, handler};
use crate::prelude::*;

timed_loop! {
    /// `div ecx` (two bytes).
    divide: called "mov eax, 1", "xor edx, edx", "xor ecx, ecx", ".byte 0xf7, 0xf1";
    aarch64 none "a division by zero gives 0 on arm64, without a trap"
}

handler! {
    /// Steps over the division, and leaves its registers unchanged.
    step_over: "add rax, 2", "mov [rdx + {rip}], rax"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/divide",
    operation: "One DIV by zero (#DE) and the SIGFPE handler that counts it and steps over it.",
    avoid: "Test the divisor: a branch is faster than a trap.",
    source: "Intel SDM vol. 3, Interrupt 0; signal(7)",
    timed: |_| Timed::once("div", TimedLoop::Long(divide)),
    kind: Kind::Instance(|timed, _, _| {
        let untouched = |result: u64| match result {
            1 => Ok(()),
            other => Err(format!("the division left {other} in rax instead of 1")),
        };
        counted(timed, untouched, Handled::new(libc::SIGFPE, step_over, timed), "a division by zero")
    }),
    ..SIGNAL
};
