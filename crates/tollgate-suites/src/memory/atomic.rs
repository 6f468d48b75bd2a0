//! Operations on one cache line, by one processor and by several at a time.
//!
//! A plain store does not wait for its line: it retires into the store buffer, and many stores reach the cache together
//! once the line has arrived. So another processor's stores to it may cost nothing. Atomic operations wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tollgate_engine::contended::Outcome;

use crate::prelude::*;

timed_loop! {
    /// Word 0: the line, as in all these loops. The loop's counter runs in parallel with the stores, and its time is
    /// subtracted although it adds none. So an iteration has many stores.
    store:
        first "mov rcx, [r13]";
        ".rept 64", "mov [rcx], r12", ".endr";
    aarch64
        first "ldr x9, [x20]";
        ".rept 64", "str x19, [x9]", ".endr"
}

timed_loop! {
    /// A locked instruction of x86-64 is also a barrier; on arm64 all these operations acquire and release.
    add:
        first "mov rcx, [r13]";
        ".rept 8", "lock add qword ptr [rcx], 1", ".endr";
    aarch64
        first ".arch_extension lse", "ldr x9, [x20]", "mov x10, 1";
        ".rept 8", "ldaddal x10, x0, [x9]", ".endr"
}

timed_loop! {
    /// The addition of processors without an instruction for it: a store that fails if the line was taken in between.
    add_exclusive: none "x86-64 has no exclusive loads and stores";
    aarch64
        first "ldr x9, [x20]";
        ".rept 8", "3:", "ldaxr x0, [x9]", "add x0, x0, 1", "stlxr w10, x0, [x9]", "cbnz w10, 3b", ".endr"
}

timed_loop! {
    /// XCHG with memory is atomic without a prefix (Intel SDM volume 3, 9.1.2.1).
    xchg:
        first "mov rcx, [r13]";
        ".rept 8", "xchg [rcx], rax", ".endr";
    aarch64
        first ".arch_extension lse", "ldr x9, [x20]";
        ".rept 8", "swpal x0, x0, [x9]", ".endr"
}

timed_loop! {
    /// Compares with zero, the constant value, and stores it again: no exchange fails.
    cas:
        first "mov rcx, [r13]", "xor edx, edx";
        ".rept 8", "lock cmpxchg [rcx], rdx", ".endr";
    aarch64
        first ".arch_extension lse", "ldr x9, [x20]";
        ".rept 8", "casal x0, xzr, [x9]", ".endr"
}

contending_loop! {
    store_contending:
        "mov rcx, [r13]",
        ".rept 8", "mov [rcx], rbp", ".endr";
    aarch64
        "ldr x9, [x20]",
        ".rept 8", "str x19, [x9]", ".endr"
}

contending_loop! {
    add_contending:
        "mov rcx, [r13]",
        ".rept 8", "lock add qword ptr [rcx], 1", ".endr";
    aarch64
        ".arch_extension lse", "ldr x9, [x20]", "mov x10, 1",
        ".rept 8", "ldaddal x10, x0, [x9]", ".endr"
}

contending_loop! {
    add_exclusive_contending: none;
    aarch64
        "ldr x9, [x20]",
        ".rept 8", "3:", "ldaxr x0, [x9]", "add x0, x0, 1", "stlxr w10, x0, [x9]", "cbnz w10, 3b", ".endr"
}

contending_loop! {
    xchg_contending:
        "mov rcx, [r13]",
        ".rept 8", "xchg [rcx], rax", ".endr";
    aarch64
        ".arch_extension lse", "ldr x9, [x20]",
        ".rept 8", "swpal x0, x0, [x9]", ".endr"
}

contending_loop! {
    cas_contending:
        "mov rcx, [r13]", "xor eax, eax", "xor edx, edx",
        ".rept 8", "lock cmpxchg [rcx], rdx", ".endr";
    aarch64
        ".arch_extension lse", "ldr x9, [x20]", "mov x0, 0",
        ".rept 8", "casal x0, xzr, [x9]", ".endr"
}

/// Operations in an iteration of all loops but `store`.
const OPERATIONS: u64 = 8;
const STORES: u64 = 64;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/atomic",
    operation: "One operation on a cache line shared by this many threads, each on a processor of its own: a plain store, an atomic addition, an exchange, or a compare-and-swap that succeeds.",
    avoid: "Count per thread and sum when the total is read.",
    source: "Intel SDM vol. 3, Locked Atomic Operations; McKenney, Is Parallel Programming Hard, Counting",
    crosses: &[Atomic, CacheLine, UserCode],
    crossed_in: |params, boundary| match boundary {
        Atomic => word(params, "op") != "store",
        CacheLine => number(params, "threads") > 1,
        _ => word(params, "op") == "store",
    },
    timed: |params| {
        Op::try_from(params).map_or(NOT_TIMED, |op| {
            let (code, _, instruction, times) = op.value();
            Timed::Loop { code: TimedLoop::Long(code), instruction, times: times as usize }
        })
    },
    cases: |machine| cases(machine.architecture, &[1, 2]),
    thorough_cases: |machine| cases(machine.architecture, &more_threads(machine.processors.len() as u64)),
    headlines: &[Headline::of(Section::Memory, "atomic add, 2 threads", &[("op", "add"), ("threads", "2")])],
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

fn cases(on: Architecture, threads: &[u64]) -> Vec<Params> {
    let case = |op: &str, threads: u64| params(&[("op", op.into()), ("threads", threads.into())]);
    let of = |op: &'static str| threads.iter().map(move |&threads| case(op, threads));
    let there = Op::ALL.iter().filter(|op| op.value().0.why_absent(on).is_none());
    there.flat_map(|op| of(op.word())).collect()
}

/// Returns powers of two from four up to the number of processors, and that number.
fn more_threads(processors: u64) -> Vec<u64> {
    let mut threads: Vec<u64> = (2..16).map(|power| 1 << power).take_while(|&n| n < processors).collect();
    if processors > 2 {
        threads.push(processors);
    }
    threads
}

words! {
    /// The loops, the instruction, and how often it stands in an iteration.
    enum Op("op"): (LongLoop, ContendingLoop, &'static str, u64) {
        Store = "store" => (store, store_contending, "mov/str", STORES),
        Add = "add" => (add, add_contending, "lock add/ldaddal", OPERATIONS),
        AddExclusive = "add-exclusive" => (add_exclusive, add_exclusive_contending, "stlxr", OPERATIONS),
        Xchg = "xchg" => (xchg, xchg_contending, "xchg/swpal", OPERATIONS),
        Cas = "cas" => (cas, cas_contending, "lock cmpxchg/casal", OPERATIONS),
    }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let threads = number(params, "threads") as usize;
    let others = cpu::others(&context.processors);
    if others.len() + 1 < threads {
        return Err(skip!("{threads} processors are needed, but this process may use {}", others.len() + 1));
    }
    let op = Op::try_from(params)?;
    if !matches!(op, Op::Store | Op::AddExclusive) {
        checks::atomics()?;
    }
    let (code, contending, _, operations) = op.value();
    let partner = |&cpu: &usize| Partner { cpu, code: contending, side: Box::default() };
    let partners: Vec<Partner> = others.iter().take(threads.saturating_sub(1)).map(partner).collect();
    let contender =
        OnOneLine { line: Arc::default(), iterations: 0, adds: matches!(op, Op::Add | Op::AddExclusive) };
    // SAFETY: all loops change one word of a line that the contender keeps.
    let runner = unsafe { Contended::new(context, code, partners, contender) };
    Ok(Instance::new(runner).with_ops(operations))
}

#[repr(align(128))]
#[derive(Default)]
pub(super) struct Line(pub AtomicU64);

struct OnOneLine {
    line: Arc<Line>,
    iterations: u64,
    adds: bool,
}

impl Contender for OnOneLine {
    fn before(&mut self, context: &mut LoopContext, partners: &mut [Partner], iterations: u64) {
        self.line.0.store(0, SeqCst);
        self.iterations = iterations;
        context.words[0] = self.line.0.as_ptr() as u64;
        partners.iter_mut().for_each(|partner| partner.side.words[0] = context.words[0]);
    }

    fn after(&mut self, _: &LoopContext, partners: &[Partner]) -> Result<Outcome> {
        let theirs: u64 =
            self.iterations + partners.iter().map(|partner| partner.side.iterations()).sum::<u64>();
        let (sum, expected) = (self.line.0.load(SeqCst), theirs * OPERATIONS);
        if self.adds && sum != expected {
            Err(fail!("{expected} atomic increments made {sum}"))
        } else {
            Ok(Outcome::Sound(None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ready;

    #[test]
    fn threads_double_until_there_is_one_for_each_processor() {
        let threads = [1, 2, 3, 4, 6, 64].map(more_threads);
        assert_eq!(threads[..3], [vec![], vec![], vec![3]]);
        assert_eq!((threads[3].as_slice(), threads[4].as_slice()), ([4].as_slice(), [4, 6].as_slice()));
        assert_eq!(threads[5], [4, 8, 16, 32, 64]);
    }

    #[test]
    fn no_addition_is_lost() {
        let all = cpu::allowed();
        let mut context = Context::here();
        let Some(&home) = all.last() else { panic!("no processor allowed") };
        cpu::pin(home).expect("an allowed processor");
        let Ok((clock @ Clock::Tsc { .. }, _)) = Clock::tsc() else {
            return eprintln!("skipped: no time stamp counter");
        };
        for case in cases(HERE, &[1, 2]).iter().filter(|case| word(case, "op").starts_with("add")) {
            // A wrong sum is an error.
            let Some(mut instance) = ready(case, instance(case, &mut context)) else { continue };
            instance.batch(clock, Order::new(1000)).expect("a batch");
        }
        cpu::allow(&all);
    }
}
