//! TLB shootdowns: a change of the address space while threads of the process run on other processors, which must forget
//! what they know of the page.

use tollgate_engine::contended::Outcome;

use crate::prelude::*;
use crate::scaling::processors;

timed_loop! {
    /// Takes the permission to write from a page, and gives it back: only the first has to be known elsewhere. Word 0:
    /// the page.
    protect:
        "mov eax, 10", "mov rdi, [r13]", "mov esi, 4096", "mov edx, 1", "syscall",
        "mov eax, 10", "mov edx, 3", "syscall"
}

timed_loop! {
    /// Touches a page and gives it back.
    discard:
        "mov rdi, [r13]", "mov byte ptr [rdi], 1",
        "mov eax, 28", "mov esi, 4096", "mov edx, 4", "syscall"
}

timed_loop! {
    /// Maps a page, touches it and unmaps it.
    unmap:
        "mov eax, 9", "xor edi, edi", "mov esi, 4096", "mov edx, 3", "mov r10d, 0x22", "mov r8, -1", "xor r9d, r9d",
        "syscall",
        "mov rdi, rax", "mov byte ptr [rdi], 1",
        "mov eax, 11", "mov esi, 4096", "syscall"
}

contending_loop! {
    /// Runs in user mode, without memory.
    run: "mov ecx, 512", "3:", "dec ecx", "jnz 3b"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/shootdown",
    operation: "A page is given back, unmapped, or made read-only and writable again, while so many other threads of the process run on other processors.",
    avoid: "Change mappings rarely and many pages at once, and keep what changes much in processes of few threads.",
    source: "Documentation/arch/x86/tlb.rst; arch/x86/mm/tlb.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, Tlb, PageFault, TlbShootdown, InterProcessorInterrupt],
    crossed_in: |params, boundary| match boundary {
        TlbShootdown | InterProcessorInterrupt => number(params, "threads") > 0,
        PageFault => word(params, "call") != "mprotect",
        _ => true,
    },
    timed: |params| {
        let (code, times) = loops(params);
        Timed::Together { code, instruction: "syscall", times }
    },
    cases: || cases(&CALLS, &usual_threads()),
    in_everything: |params| word(params, "call") == "munmap",
    thorough_cases: || {
        let usual = usual_threads();
        let more = (1..16).map(|power| (1_u64 << power) - 1);
        let more: Vec<u64> =
            more.take_while(|&threads| threads + 1 < processors()).filter(|n| !usual.contains(n)).collect();
        cases(&CALLS, &more)
    },
    baseline_params: |params| {
        let mut alone = params.clone();
        alone.insert("threads".to_owned(), 0.into());
        Some(alone)
    },
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some("a guest under QEMU's translator has no other processors to interrupt"),
    ..PLAIN
};

const CALLS: [&str; 3] = ["mprotect", "madvise", "munmap"];

/// No other thread, one, and one on every other processor.
fn usual_threads() -> Vec<u64> {
    let mut threads = vec![0, 1, processors().saturating_sub(1)];
    threads.retain(|&threads| threads < processors());
    threads.dedup();
    threads
}

fn cases(calls: &[&str], threads: &[u64]) -> Vec<Params> {
    let case = |call: &str, threads: u64| params(&[("call", call.into()), ("threads", threads.into())]);
    calls.iter().flat_map(|call| threads.iter().map(move |&threads| case(call, threads))).collect()
}

fn loops(params: &Params) -> (LongLoop, usize) {
    match word(params, "call") {
        "mprotect" => (protect, 2),
        "madvise" => (discard, 1),
        _ => (unmap, 2),
    }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let threads = number(params, "threads") as usize;
    let others = cpu::others(&context.processors);
    if others.len() < threads {
        return Err(skip!(
            "{} processors are needed, and this process may use {}",
            threads + 1,
            others.len() + 1
        ));
    }
    const PAGE: usize = 4096;
    let page = Mapping::anonymous(PAGE, libc::MAP_PRIVATE);
    let page = page.map_err(|error| Refusal::of("mmap(2) is refused", &error))?;
    // SAFETY: the first byte of the page.
    unsafe { page.address().write_volatile(1) };
    let partner = |&cpu: &usize| Partner { cpu, code: run, side: Box::default() };
    let partners = others.iter().take(threads).map(partner).collect();
    let (code, _) = loops(params);
    // SAFETY: the loops change the page that the contender keeps, and one that they map themselves.
    let runner = unsafe { Contended::new(context, code, partners, Changed { page }) };
    Ok(Instance::new(runner))
}

struct Changed {
    page: Mapping,
}

impl Contender for Changed {
    fn before(&mut self, context: &mut LoopContext, _: &mut [Partner], _: u64) {
        context.words[0] = self.page.address() as u64;
    }

    fn after(&mut self, context: &LoopContext, _: &[Partner]) -> Result<Outcome> {
        match context.result.cast_signed() {
            0 => Ok(Outcome::Sound(None)),
            error => {
                let error = std::io::Error::from_raw_os_error(error.unsigned_abs() as i32);
                Err(Refusal::of("the last call is refused", &error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pinned, two_processors};

    /// The shootdowns that all processors have received (proc_interrupts(5)); None where the kernel does not count them.
    fn received() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/interrupts").ok()?;
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
        Some(line.split_whitespace().map_while(|number| number.parse::<u64>().ok()).sum())
    }

    #[test]
    fn each_change_interrupts_a_processor_that_runs_the_process() {
        const BATCHES: u64 = 10;
        const CHANGES: u64 = 50;
        let Some((all, clock)) = two_processors() else { return };
        let mut context = Context::here();
        pinned();
        for case in cases(&CALLS, &[1]) {
            let mut instance = instance(&case, &mut context).expect("two processors");
            let before = received();
            for _ in 0..BATCHES {
                instance.batch(clock, Order::of(CHANGES)).expect("a batch");
            }
            match before.zip(received()) {
                None => eprintln!("skipped: the kernel does not count shootdowns"),
                // A hypervisor may do it without an interrupt.
                Some((before, after)) if after == before => eprintln!("skipped: no shootdown was counted"),
                Some((before, after)) => {
                    assert!(
                        after - before >= BATCHES * CHANGES / 4,
                        "{case:?}: {} interrupts",
                        after - before
                    );
                }
            }
        }
        cpu::allow(&all);
    }
}
