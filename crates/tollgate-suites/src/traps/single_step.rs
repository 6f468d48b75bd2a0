use super::handler::{self, Handled, SIGNAL, counted, handler};
use crate::prelude::*;

timed_loop! {
    /// #DB comes after the instruction that follows the one that sets TF (Intel SDM vol. 3, single-step exception
    /// condition).
    step: called "pushfq", "or dword ptr [rsp], 0x100", "popfq", "nop";
    aarch64 none "a program of arm64 cannot step itself: the bit of PSTATE is the kernel's"
}

handler! {
    /// Clears TF, so that the program continues without traps.
    stop: "and dword ptr [rdx + {eflags}], 0xfffffeff"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/single-step",
    operation: "One instruction run with the trap flag set (#DB) and the SIGTRAP handler that counts it and clears the flag.",
    avoid: "Step with breakpoints at the branches instead of every instruction.",
    source: "Intel SDM vol. 3, Interrupt 1; ptrace(2)",
    timed: |_| Timed::once("popfq", TimedLoop::Long(step)),
    kind: Kind::Instance(|timed, _, _| {
        if !traps()? {
            return Err(skip!("the trap flag does not trap here"));
        }
        counted(timed, checks::any, Handled::new(libc::SIGTRAP, stop, timed), "the trap flag")
    }),
    ..SIGNAL
};

/// Returns whether one step traps exactly once. The flag is clear afterwards in any case.
fn traps() -> Result<bool> {
    tollgate_arch::code! {
    fn one_step() {
            "pushfq",
            "or dword ptr [rsp], 0x100",
            "popfq",
            "nop",
            "pushfq",
            "and dword ptr [rsp], 0xfffffeff",
            "popfq",
            "ret",
         }
    }
    // SAFETY: it changes only the flags.
    unsafe { handler::traps(libc::SIGTRAP, stop, one_step) }
}
