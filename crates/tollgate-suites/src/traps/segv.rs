//! A store to a read-only page (lmbench, lat_sig prot).

use super::handler::{Handled, TRAP, handler, tried};
use super::memory::Region;
use super::touched::{self, SMALL};
use crate::prelude::*;

handler! {
    /// Steps over the store (`mov byte ptr [rax], 1`, three bytes; four on arm64).
    step_over: "add rax, 3", "mov [rdx + {rip}], rax"; aarch64 "add x3, x3, 4", "str x3, [x2, {rip}]"
}

handler! {
    /// Makes the page writable by mprotect(2), number 10 (its address is at 16 in the siginfo), and retries the store.
    repair:
        "mov rdi, [rsi + 16]", "and rdi, -4096", "mov esi, 4096", "mov edx, 3", "mov eax, 10", "syscall";
        aarch64 "ldr x0, [x1, 16]", "and x0, x0, -4096", "mov x1, 4096", "mov x2, 3", "mov x8, 226", "svc 0"
}

/// Pages of the region, and the limit of stores in a batch.
const MOST: usize = 256;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/segv",
    operation: "One store to a read-only page and the SIGSEGV handler that steps over it, or makes the page writable.",
    avoid: "Use userfaultfd, or track writes by soft-dirty bits, in place of a SIGSEGV handler with mprotect.",
    source: "Intel SDM vol. 3, Interrupt 14; mprotect(2); userfaultfd(2)",
    crosses: &[KernelEntry, Exception, KernelCode, Signal, UserCopy, SystemCall],
    crossed_in: |params, boundary| boundary != SystemCall || word(params, "repair") == "mprotect",
    timed: |_| SMALL,
    counts: Some("signals"),
    cases: |_| each_word("repair", Repair::WORDS),
    kind: Kind::Instance(|timed, params, _| {
        let around = ReadOnly::new(timed, Repair::try_from(params)? == Repair::Mprotect)?;
        // SAFETY: before each batch the hooks set word 0 to the start of their region, which has a page for each store.
        let timed =
            unsafe { Loop::new(timed, [0; 7], None, touched::aligned(page_size())) }?.with_hooks(around);
        Ok(tried(timed, 1, "a store to a read-only page")?.here().with_most(MOST as u64))
    }),
    ..TRAP
};

words! {
    enum Repair("repair") { Skip = "skip", Mprotect = "mprotect" }
}

struct ReadOnly {
    handled: Handled,
    region: Region,
    repairs: bool,
    stores: usize,
}

impl ReadOnly {
    fn new(timed: Timed, repairs: bool) -> Result<Self> {
        let handler = if repairs { repair } else { step_over };
        let handled = Handled::new(libc::SIGSEGV, handler, timed);
        Ok(Self { handled, region: touched::small(MOST)?, repairs, stores: 0 })
    }
}

impl BatchHooks for ReadOnly {
    fn before(&mut self, context: &mut LoopContext, iterations: u64) -> Result<()> {
        if iterations > MOST as u64 {
            return Err(fail!("{iterations} stores were requested, there are {MOST} pages"));
        }
        self.stores = iterations as usize;
        self.region.protect(libc::PROT_READ | libc::PROT_WRITE)?;
        for page in 0..self.stores {
            self.region.write(page * page_size(), 0);
        }
        self.region.protect(libc::PROT_READ)?;
        context.words[..2].copy_from_slice(&[self.region.start(), page_size() as u64]);
        self.handled.install()
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        let signals = self.handled.remove();
        let stored = (0..self.stores).filter(|page| self.region.read(page * page_size()) == 1).count();
        let wanted = if self.repairs { self.stores } else { 0 };
        if stored == wanted {
            Ok(Some(signals))
        } else {
            Err(fail!("of {} stores {stored} took effect", self.stores))
        }
    }
}
