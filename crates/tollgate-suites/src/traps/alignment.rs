use super::handler::{self, Handled, SIGNAL, handler, tried};
use crate::prelude::*;

timed_loop! {
    /// A load from an odd address within the context, with AC set (Intel SDM vol. 3, interrupt 17; Linux sets CR0.AM). On arm64
    /// an exclusive load must be aligned; one across 16 bytes faults with LSE2 as well (Arm ARM, B2.8.2).
    odd_load: called
        "pushfq", "or dword ptr [rsp], 0x40000", "popfq", "mov rbx, [r13 + 1]";
    aarch64 "add x9, x20, #12", "ldxr x0, [x9]"
}

handler! {
    /// Clears AC, so that the retried load succeeds. The flag stays set in the handler, where every access is aligned. On arm64
    /// the load is stepped over.
    allow: "and dword ptr [rdx + {eflags}], 0xfffbffff"; aarch64 "add x3, x3, 4", "str x3, [x2, {rip}]"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/alignment",
    operation: "One misaligned load that traps (with the AC flag set, on arm64 LDXR) and the SIGBUS handler that counts it and clears the flag, or steps over it.",
    avoid: "Leave alignment checks off: x86-64 loads misaligned data within a line at no extra latency.",
    source: "Intel SDM vol. 3, Interrupt 17",
    timed: |_| Timed::once("mov/ldxr", TimedLoop::Long(odd_load)),
    kind: Kind::Instance(|timed, _, _| {
        if !traps()? {
            return Err(skip!("a misaligned load does not trap here"));
        }
        // SAFETY: the loop reads its context; the flag is clear after each load, and no Rust code runs while it is set.
        let timed_loop = unsafe { Loop::new(timed, [0; 7], None, checks::any) }?;
        let handled = Handled::new(libc::SIGBUS, allow, timed);
        Ok(tried(timed_loop.with_hooks(handled), 1, "a misaligned load")?.here())
    }),
    ..SIGNAL
};

/// Returns whether one such load traps exactly once. The flag is clear afterwards in any case.
fn traps() -> Result<bool> {
    tollgate_arch::code! {
    /// The loop's body once, with 16 aligned bytes of the stack in place of the context.
    fn one_load() {
            "sub rsp, 24",
            "pushfq",
            "or dword ptr [rsp], 0x40000",
            "popfq",
            "mov rax, [rsp + 1]",
            "pushfq",
            "and dword ptr [rsp], 0xfffbffff",
            "popfq",
            "add rsp, 24",
            "ret",
         }
         aarch64 { "sub sp, sp, 32", "add x9, sp, 12", "ldxr x0, [x9]", "add sp, sp, 32", "ret" }
    }
    // SAFETY: it reads from its own frame and changes only the flags, which it restores.
    unsafe { handler::traps(libc::SIGBUS, allow, one_load) }
}
