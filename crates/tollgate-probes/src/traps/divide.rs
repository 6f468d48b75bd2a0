//! The division by zero.

use tollgate_model::Boundary::{Exception, KernelCode, KernelEntry, Signal, UserCopy};

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::handler::{self, Handled, handler, tried};

timed_loop! {
    /// `div ecx` (two bytes).
    divide: "mov eax, 1", "xor edx, edx", "xor ecx, ecx", ".byte 0xf7, 0xf1"
}

handler! {
    /// Steps over the division, whose registers stay as they were.
    step_over: "add rax, 2", "mov [rdx + {rip}], rax"
}

pub(super) static PROBE: Probe = Probe {
    name: "traps/divide",
    operation: "One DIV by zero (#DE) and the SIGFPE handler that counts it and steps over it.",
    crosses: &[KernelEntry, Exception, KernelCode, Signal, UserCopy],
    timed: |_| Timed::once("div", TimedLoop::Long(divide)),
    counts: Some("signals"),
    arm: |probe, params| {
        let timed = (probe.timed)(params);
        let untouched = |result: u64| match result {
            1 => Ok(()),
            other => Err(format!("the division left {other} in rax instead of 1")),
        };
        // SAFETY: the loop needs nothing from its context.
        let timed_loop = unsafe { Loop::new(timed, [0; 7], None, untouched) }?;
        let handled = Handled::new(libc::SIGFPE, step_over, timed);
        Ok(tried(timed_loop.with_around(handled), 1, "a division by zero")?.here())
    },
    absence: handler::absence,
    ..PLAIN
};
