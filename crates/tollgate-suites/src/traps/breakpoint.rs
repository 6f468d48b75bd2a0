use super::handler::{Handled, SIGNAL, counted, handler};
use crate::prelude::*;

timed_loop! {
    /// #BP is a trap: the interrupted address is already the next instruction.
    breakpoint: called "int3"; aarch64 "brk 0"
}

handler! {
    /// On arm64 it is a fault, and its address that of the instruction.
    resume:; aarch64 "add x3, x3, 4", "str x3, [x2, {rip}]"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/breakpoint",
    operation: "One breakpoint (INT3, on arm64 BRK) and the SIGTRAP handler that counts it and returns.",
    avoid: "Use uprobes or static tracepoints that are off by default, and a hardware watchpoint in place of many breakpoints.",
    source: "Intel SDM vol. 3, Interrupt 3; signal(7)",
    beside: &[
        ("traps/signal-self", "a signal with its handler and its return, without an exception"),
        ("traps/sigreturn", "the return alone"),
    ],
    timed: |_| Timed::once("int3/brk", TimedLoop::Long(breakpoint)),
    headlines: &[Headline::of(Section::Faults, "trap + handler (SIGTRAP)", &[])],
    kind: Kind::Instance(|timed, _, _| {
        counted(timed, checks::any, Handled::new(libc::SIGTRAP, resume, timed), "int3")
    }),
    ..SIGNAL
};
