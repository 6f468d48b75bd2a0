//! TLB shootdowns: the address space changes while other processors run threads of the process and must drop translations.

use tollgate_arch::features::FLUSHES_BY_INTERRUPTS;
use tollgate_engine::OwnProcess;
use tollgate_engine::contended::Outcome;
use tollgate_engine::limits::Taken;

use crate::prelude::*;

timed_loop! {
    /// Removes write permission from a page, and restores it; only the removal needs a shootdown. Word 0: the page; 1: all
    /// results, combined by OR: negative if any is.
    protect: called
        "mov eax, 10", "mov rdi, [r13]", "mov esi, 4096", "mov edx, 1", "syscall",
        "or [r13 + 8], rax",
        "mov eax, 10", "mov edx, 3", "syscall",
        "or [r13 + 8], rax";
    aarch64
        "mov x8, 226", "ldr x0, [x20]", "mov x1, 4096", "mov x2, 1", "svc 0",
        "ldr x9, [x20, #8]", "orr x9, x9, x0", "str x9, [x20, #8]",
        "ldr x0, [x20]", "mov x2, 3", "svc 0",
        "ldr x9, [x20, #8]", "orr x9, x9, x0", "str x9, [x20, #8]"
}

timed_loop! {
    /// Touches a page and discards it. The words are the same.
    discard: called
        "mov rdi, [r13]", "mov byte ptr [rdi], 1",
        "mov eax, 28", "mov esi, 4096", "mov edx, 4", "syscall",
        "or [r13 + 8], rax";
    aarch64
        "ldr x0, [x20]", "mov w9, 1", "strb w9, [x0]",
        "mov x8, 233", "mov x1, 4096", "mov x2, 4", "svc 0",
        "ldr x9, [x20, #8]", "orr x9, x9, x0", "str x9, [x20, #8]"
}

timed_loop! {
    /// Maps a page, touches it and unmaps it; without a page it does neither. Word 1: as above. The lowest 12 bits of addresses
    /// are 0, so an error number keeps its value.
    unmap: called
        "mov eax, 9", "xor edi, edi", "mov esi, 4096", "mov edx, 3", "mov r10d, 0x22", "mov r8, -1", "xor r9d, r9d",
        "syscall",
        "or [r13 + 8], rax", "mov rdi, rax", "test rax, rax", "jg 3f", "jmp 4f",
        "3:", "mov byte ptr [rdi], 1",
        "mov eax, 11", "mov esi, 4096", "syscall",
        "or [r13 + 8], rax",
        "4:";
    aarch64
        "mov x8, 222", "mov x0, 0", "mov x1, 4096", "mov x2, 3", "mov x3, 0x22", "mov x4, -1", "mov x5, 0",
        "svc 0",
        "ldr x9, [x20, #8]", "orr x9, x9, x0", "str x9, [x20, #8]",
        "cmp x0, 0", "b.le 4f",
        "mov w9, 1", "strb w9, [x0]",
        "mov x8, 215", "svc 0",
        "ldr x9, [x20, #8]", "orr x9, x9, x0", "str x9, [x20, #8]",
        "4:"
}

contending_loop! {
    /// Runs in user mode, without memory accesses.
    run: "mov ecx, 512", "3:", "dec ecx", "jnz 3b"; aarch64 "mov w9, 512", "3:", "subs w9, w9, 1", "b.ne 3b"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/shootdown",
    operation: "A page is given back, unmapped, or made read-only and writable again, while this many other threads of the process run on other processors, which an interrupt tells on x86-64, and TLBI IS without one on arm64; of one thread in a process that has run on this processor alone.",
    avoid: "Change mappings rarely, many pages at once, and in processes with few threads.",
    source: "Documentation/arch/x86/tlb.rst; arch/x86/mm/tlb.c; arch/arm64/include/asm/tlbflush.h",
    crosses: &[KernelEntry, SystemCall, KernelCode, Tlb, PageFault, TlbShootdown, InterProcessorInterrupt],
    crossed_in: |params, boundary| match boundary {
        TlbShootdown => number(params, "threads") > 0,
        InterProcessorInterrupt => FLUSHES_BY_INTERRUPTS && number(params, "threads") > 0,
        PageFault => word(params, "call") != "mprotect",
        _ => true,
    },
    timed: |params| {
        let loops = Call::try_from(params).map(Call::value);
        loops.map_or(NOT_TIMED, |(code, times)| Timed::Together { code, instruction: "syscall/svc", times })
    },
    cases: |machine| cases(&CALLS, &usual_threads(machine)),
    in_everything: |params, _| word(params, "call") == "munmap",
    thorough_cases: |machine| {
        let (usual, most) = (usual_threads(machine), machine.parallelism() as u64);
        let more = (1..16).map(|power| (1_u64 << power) - 1);
        let more: Vec<u64> =
            more.take_while(|&threads| threads + 1 < most).filter(|n| !usual.contains(n)).collect();
        cases(&CALLS, &more)
    },
    baseline: Baseline::Case(|params| {
        let mut alone = params.clone();
        alone.insert("threads".to_owned(), 0.into());
        Some(alone)
    }),
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    forks: |params| number(params, "threads") == 0,
    uncounted: Some("a guest that counts executes one processor at a time, and a shootdown waits for others"),
    ..PLAIN
};

const CALLS: [&str; 3] = ["mprotect", "madvise", "munmap"];

/// No other thread, one, and one on every other processor.
fn usual_threads(machine: &Topology) -> Vec<u64> {
    let most = machine.parallelism() as u64;
    let mut threads = vec![0, 1, most.saturating_sub(1)];
    threads.retain(|&threads| threads < most);
    threads.dedup();
    threads
}

fn cases(calls: &[&str], threads: &[u64]) -> Vec<Params> {
    let case = |call: &str, threads: u64| params(&[("call", call.into()), ("threads", threads.into())]);
    calls.iter().flat_map(|call| threads.iter().map(move |&threads| case(call, threads))).collect()
}

words! {
    /// The loop and its calls in an iteration.
    enum Call("call"): (LongLoop, usize) {
        Mprotect = "mprotect" => (protect, 2),
        Madvise = "madvise" => (discard, 1),
        Munmap = "munmap" => (unmap, 2),
    }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let threads = number(params, "threads") as usize;
    let others = cpu::others(&context.processors);
    if others.len() < threads {
        return Err(skip!(
            "{} processors are needed, but this process may use {}",
            threads + 1,
            others.len() + 1
        ));
    }
    let (code, _) = Call::try_from(params)?.value();
    if threads == 0 {
        return alone(code, context);
    }
    let partner = |&cpu: &usize| Partner { cpu, code: run, side: Box::default() };
    Ok(Instance::new(changes(code, others.iter().take(threads).map(partner).collect(), context)?))
}

/// Runs the loop in its own process, on one processor from its start. At every flush the kernel asks each other processor that a
/// process has run on whether it must be interrupted, and forgets such a processor at most once a second (mm_cpumask and
/// should_trim_cpumask in arch/x86/mm/tlb.c). That took 160 ns more on an EPYC, by where a process started and what ran in it.
fn alone(code: LongLoop, context: &mut Context) -> Result<Instance> {
    let quota = context.quota.clone();
    let taken = quota.take_processes(1)?;
    let own = OwnProcess::start(&quota, || {
        Ok(vec![Box::new(Alone(changes(code, Vec::new(), context)?)) as Box<dyn Experiment>])
    })?;
    Ok(Instance::new(Elsewhere { loops: own.experiment(0), _taken: taken }))
}

fn changes(code: LongLoop, partners: Vec<Partner>, context: &mut Context) -> Result<Contended> {
    // Other instances of the process have memory of the same kind.
    let page = Mapping::alone(page_size());
    let page = page.map_err(|error| Refusal::new("mmap(2) is refused", &error))?;
    // SAFETY: the first byte of the page.
    unsafe { page.address().write_volatile(1) };
    // SAFETY: the loops change the page that the contender keeps, and one that they map themselves.
    Ok(unsafe { Contended::new(context, code, partners, Changed { page }) })
}

struct Alone(Contended);

impl Experiment for Alone {
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        Ok(vec![self.0.batch(clock, order)?])
    }
}

struct Elsewhere<R> {
    loops: R,
    _taken: Taken,
}

impl<R: Runner> Runner for Elsewhere<R> {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.loops.batch(clock, order)
    }
}

struct Changed {
    page: Mapping,
}

impl Contender for Changed {
    fn before(&mut self, context: &mut LoopContext, _: &mut [Partner], _: u64) {
        context.words[..2].copy_from_slice(&[self.page.address() as u64, 0]);
    }

    fn after(&mut self, context: &LoopContext, _: &[Partner]) -> Result<Outcome> {
        match context.words[1].cast_signed() {
            0.. => Ok(Outcome::Sound(None)),
            error => {
                let error = std::io::Error::from_raw_os_error(error.unsigned_abs() as i32);
                Err(Refusal::new("a change of a mapping is refused", &error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_arch::cpuid::CPUID;

    use super::*;
    use crate::processes::raw::tests::in_a_process_of_its_own;
    use crate::testing::{patiently, pinned, two_processors};

    /// Returns the shootdowns that all processors have received (proc_interrupts(5)); `None` if the kernel does not count them.
    fn received() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/interrupts").ok()?;
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
        Some(line.split_whitespace().map_while(|number| number.parse::<u64>().ok()).sum())
    }

    /// Returns whether the kernel can flush other processors' TLBs without an interrupt: by a hypercall, by a mark for a
    /// processor that does not run (KVM_FEATURE_PV_TLB_FLUSH, Documentation/virt/kvm/x86/cpuid.rst), or by INVLPGB (AMD APM
    /// volume 3).
    fn has_other_means() -> bool {
        let Some(cpuid) = CPUID else { return !FLUSHES_BY_INTERRUPTS };
        let hypervisor = cpuid(0x4000_0000, 0);
        let name = [hypervisor.ebx, hypervisor.ecx, hypervisor.edx].map(u32::to_le_bytes).concat();
        let is_guest = cpuid(1, 0).ecx >> 31 == 1;
        let is_marked = name == *b"KVMKVMKVM\0\0\0" && cpuid(0x4000_0001, 0).eax >> 9 & 1 == 1;
        let by_call = [*b"Microsoft Hv", *b"XenVMMXenVMM"].iter().any(|known| name == *known);
        let is_broadcast =
            cpuid(0x8000_0000, 0).eax >= 0x8000_0008 && cpuid(0x8000_0008, 0).ebx >> 3 & 1 == 1;
        is_broadcast || is_guest && (is_marked || by_call)
    }

    #[test]
    fn a_call_that_is_refused_ends_no_process() {
        in_a_process_of_its_own(|| {
            let mut context = Context::here();
            pinned();
            let mut instance = changes(unmap, Vec::new(), &mut context).expect("a page");
            instance.batch(Clock::Kernel, Order::new(4)).expect("a batch");
            let now = limit();
            set_limit(libc::rlimit { rlim_cur: 1, ..now });
            let refused = instance.batch(Clock::Kernel, Order::new(4));
            set_limit(now);
            let why = refused.expect_err("no memory");
            assert!(why.why().starts_with("a change of a mapping is refused"), "{why:?}");
            instance.batch(Clock::Kernel, Order::new(4)).expect("a batch");
        });
    }

    /// RLIMIT_AS, which mmap(2) obeys.
    fn limit() -> libc::rlimit {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the kernel writes the structure.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) }, 0);
        limit
    }

    fn set_limit(limit: libc::rlimit) {
        // SAFETY: the kernel reads the structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    }

    #[test]
    fn each_change_interrupts_a_processor_that_runs_the_process() {
        const BATCHES: u64 = 10;
        const CHANGES: u64 = 50;
        const ENOUGH: u64 = 20;
        let Some((all, clock)) = two_processors() else { return };
        let mut context = Context::here();
        pinned();
        for case in cases(&CALLS, &[1]) {
            let mut instance = instance(&case, &mut context).expect("two processors");
            let mut batch = || {
                instance.batch(clock, Order::new(CHANGES)).expect("a batch");
            };
            let Some(before) = received() else {
                eprintln!("skipped: the kernel does not count shootdowns");
                continue;
            };
            (0..BATCHES).for_each(|_| batch());
            if received() == Some(before) && has_other_means() {
                eprintln!("skipped: shootdowns are made without an interrupt here");
                continue;
            }
            // On a busy machine the other thread seldom runs while the process changes.
            patiently(&format!("{ENOUGH} interrupts of {case:?}"), || {
                batch();
                received().filter(|after| after - before >= ENOUGH)
            });
        }
        cpu::allow(&all);
    }
}
