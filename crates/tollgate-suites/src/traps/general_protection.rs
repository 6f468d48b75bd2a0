use super::handler::{Handled, SIGNAL, counted, handler};
use crate::prelude::*;

timed_loop! {
    halt: called "hlt"; aarch64 none "what a program may not execute is an undefined instruction on arm64"
}

handler! {
    /// Steps over it (one byte).
    step_over: "add rax, 1", "mov [rdx + {rip}], rax"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/general-protection",
    operation: "One HLT outside the kernel (#GP) and the SIGSEGV handler that counts it and steps over it.",
    avoid: "Do not run privileged instructions in user mode; ask the kernel once.",
    source: "Intel SDM vol. 3, Interrupt 13; signal(7)",
    timed: |_| Timed::once("hlt", TimedLoop::Long(halt)),
    kind: Kind::Instance(|timed, _, _| counted(timed, checks::any, handled(timed), "hlt")),
    ..SIGNAL
};

pub(super) fn handled(timed: Timed) -> Handled {
    Handled::new(libc::SIGSEGV, step_over, timed)
}
