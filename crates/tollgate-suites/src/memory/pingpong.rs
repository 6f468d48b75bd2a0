//! Round trips of one cache line between two processors.
//!
//! A store passes the line on as a program passes data: it is a store-release, and the load that waits for it a load-acquire. On
//! x86-64 every MOV is one or the other (Intel SDM vol. 3, 9.2.2); arm64 has STLR and LDAR for this.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tollgate_engine::contended::Outcome;

use super::region::Region;
use super::topology::{Pair, every_pair, left_out, usual_pairs};
use super::{atomic::Line, pairing::shared_pairs};
use crate::prelude::*;

timed_loop! {
    /// Stores an odd number and waits for the next even one. Words: 0: the line; 1: the number; 2: the limit of polls.
    store:
        first "mov rcx, [r13]", "mov rdx, [r13 + 8]", "mov rsi, [r13 + 16]";
        "mov [rcx], rdx", "inc rdx",
        "3:", "mov rax, [rcx]", "cmp rax, rdx", "je 4f", "dec rsi", "jg 3b",
        "4:", "inc rdx", "mov [r13 + 8], rdx", "mov [r13 + 16], rsi";
    aarch64
        first "ldr x9, [x20]", "ldr x10, [x20, #8]", "ldr x11, [x20, #16]";
        "stlr x10, [x9]", "add x10, x10, 1",
        "3:", "ldar x0, [x9]", "cmp x0, x10", "b.eq 4f", "subs x11, x11, 1", "b.gt 3b",
        "4:", "add x10, x10, 1", "str x10, [x20, #8]", "str x11, [x20, #16]"
}

timed_loop! {
    /// Waits for an even number and exchanges it for the next odd one. The words are the same.
    exchange:
        first "mov rcx, [r13]", "mov rdi, [r13 + 8]", "mov rsi, [r13 + 16]";
        "3:", "mov rax, rdi", "lea rdx, [rdi + 1]", "lock cmpxchg [rcx], rdx", "je 4f", "dec rsi", "jg 3b",
        "4:", "add rdi, 2", "mov [r13 + 8], rdi", "mov [r13 + 16], rsi";
    aarch64
        first ".arch_extension lse", "ldr x9, [x20]", "ldr x10, [x20, #8]", "ldr x11, [x20, #16]";
        "3:", "mov x0, x10", "add x12, x10, 1", "casal x0, x12, [x9]", "cmp x0, x10", "b.eq 4f", "subs x11, x11, 1",
        "b.gt 3b",
        "4:", "add x10, x10, 2", "str x10, [x20, #8]", "str x11, [x20, #16]"
}

contending_loop! {
    /// Answers an odd number with the next even one. Polls 128 times in an iteration.
    store_contending:
        "mov rcx, [r13]", "mov esi, 128",
        "3:", "mov rax, [rcx]", "test al, 1", "jnz 4f", "dec esi", "jnz 3b", "jmp 5f",
        "4:", "inc rax", "mov [rcx], rax",
        "5:";
    aarch64
        "ldr x9, [x20]", "mov w11, 128",
        "3:", "ldar x10, [x9]", "tbnz x10, 0, 4f", "subs w11, w11, 1", "b.ne 3b", "b 5f",
        "4:", "add x10, x10, 1", "stlr x10, [x9]",
        "5:"
}

contending_loop! {
    /// Exchanges an odd number for the next even one. Word 1: the number. Tries 32 times in an iteration.
    exchange_contending:
        "mov rcx, [r13]", "mov rdi, [r13 + 8]", "mov esi, 32",
        "3:", "mov rax, rdi", "lea rdx, [rdi + 1]", "lock cmpxchg [rcx], rdx", "je 4f", "dec esi", "jnz 3b", "jmp 5f",
        "4:", "add rdi, 2", "mov [r13 + 8], rdi",
        "5:";
    aarch64
        ".arch_extension lse", "ldr x9, [x20]", "ldr x10, [x20, #8]", "mov w11, 32",
        "3:", "mov x0, x10", "add x12, x10, 1", "casal x0, x12, [x9]", "cmp x0, x10", "b.eq 4f", "subs w11, w11, 1",
        "b.ne 3b", "b 5f",
        "4:", "add x10, x10, 2", "str x10, [x20, #8]",
        "5:"
}

/// Transfers of a round trip.
const HAND_OVERS: u64 = 2;
/// Limit of polls in a batch: a few milliseconds, longer than any transfer.
const PATIENCE: u64 = 1 << 20;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/pingpong",
    operation: "One transfer of a modified cache line to another processor, which then stores to it: half a round trip.",
    avoid: "Let one thread own a line, batch what is handed over, and place threads that share a cache together.",
    source: "Intel SDM vol. 3, Caching; Drepper, What Every Programmer Should Know About Memory, 2007",
    crosses: &[CacheLine, Atomic],
    crossed_in: |params, boundary| boundary != Atomic || word(params, "protocol") == "cas",
    timed: |params| {
        let loops = Protocol::try_from(params).map(Protocol::value);
        loops.map_or(NOT_TIMED, |(code, _, instruction)| Timed::Together { code, instruction, times: 1 })
    },
    cases: |machine| match usual_pairs(machine) {
        none if none.is_empty() => cases(&[(0, 0)]),
        pairs => cases(&pairs.iter().map(|pair| (pair.from, pair.to)).collect::<Vec<_>>()),
    },
    thorough_cases: |machine| {
        let usual = usual_pairs(machine);
        let is_usual = |pair: &Pair| {
            usual
                .iter()
                .any(|other| [(pair.from, pair.to), (pair.to, pair.from)].contains(&(other.from, other.to)))
        };
        let others = every_pair(machine).into_iter().filter(|pair| !is_usual(pair));
        cases(&others.map(|pair| (pair.from, pair.to)).collect::<Vec<_>>())
    },
    headlines: &[Headline::of(Section::Memory, "cache line core to core", &[("protocol", "store")])],
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

fn cases(pairs: &[(usize, usize)]) -> Vec<Params> {
    let case = |&(from, to): &(usize, usize), protocol: &str| {
        params(&[("from", (from as u64).into()), ("to", (to as u64).into()), ("protocol", protocol.into())])
    };
    Protocol::WORDS.iter().flat_map(|protocol| pairs.iter().map(move |pair| case(pair, protocol))).collect()
}

words! {
    enum Protocol("protocol"): (LongLoop, ContendingLoop, &'static str) {
        Store = "store" => (store, store_contending, "mov/stlr"),
        Cas = "cas" => (exchange, exchange_contending, "lock cmpxchg/casal"),
    }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let (from, to) = (number(params, "from") as usize, number(params, "to") as usize);
    if from == to {
        return Err(Refusal::one_processor());
    }
    let protocol = Protocol::try_from(params)?;
    if protocol == Protocol::Cas {
        checks::atomics()?;
    }
    let runner = hand_over(protocol, (from, to), HandedWord::Own(Arc::default()), context);
    let known = shared_pairs(context).into_iter().chain(every_pair(&context.topology()));
    let pair = known.into_iter().find(|pair| [(from, to), (to, from)].contains(&(pair.from, pair.to)));
    let notes =
        pair.map(|pair| pair.relation.in_words().to_owned()).into_iter().chain(left_out(&context.processors));
    Ok(Instance::new(runner).with_ops(HAND_OVERS).with_notes(notes))
}

fn hand_over(
    protocol: Protocol,
    (from, to): (usize, usize),
    line: HandedWord,
    context: &mut Context,
) -> Contended {
    let (code, contending, _) = protocol.value();
    let contender = HandOver { line, trips: 0, stores: protocol == Protocol::Store };
    let partner = Partner { cpu: to, code: contending, side: Box::default() };
    // SAFETY: both loops change one word of a line that the contender keeps.
    unsafe { Contended::new(context, code, vec![partner], contender) }.on(from)
}

/// Passes the first line of a region between these processors by stores.
pub(super) fn of_region(region: Region, pair: (usize, usize), context: &mut Context) -> Instance {
    Instance::new(hand_over(Protocol::Store, pair, HandedWord::In(region), context)).with_ops(HAND_OVERS)
}

enum HandedWord {
    Own(Arc<Line>),
    In(Region),
}

impl HandedWord {
    fn word(&self) -> &AtomicU64 {
        match self {
            Self::Own(line) => &line.0,
            // SAFETY: the first word of a region, which every access uses as a whole; it lives as long as `self`.
            Self::In(region) => unsafe { &*(region.address() as *const AtomicU64) },
        }
    }
}

struct HandOver {
    line: HandedWord,
    trips: u64,
    stores: bool,
}

impl Contender for HandOver {
    fn before(&mut self, context: &mut LoopContext, partners: &mut [Partner], iterations: u64) {
        self.line.word().store(0, SeqCst);
        self.trips = iterations;
        let line = self.line.word().as_ptr() as u64;
        // The first number that each side stores, or for an exchange the one that it waits for.
        let (mine, yours) = if self.stores { (1, 2) } else { (0, 1) };
        context.words[..3].copy_from_slice(&[line, mine, PATIENCE]);
        partners.iter_mut().for_each(|partner| partner.side.words[..2].copy_from_slice(&[line, yours]));
    }

    fn after(&mut self, context: &LoopContext, _partners: &[Partner]) -> Result<Outcome> {
        if context.words[2].cast_signed() <= 0 {
            return Ok(Outcome::Incomplete);
        }
        let handed_over = self.line.word().load(SeqCst);
        let all = HAND_OVERS * self.trips;
        // An exchange does not wait for the last answer.
        let may_be = if self.stores { all..=all } else { all - 1..=all };
        if may_be.contains(&handed_over) {
            Ok(Outcome::Sound(None))
        } else {
            Err(fail!("the line was transferred {handed_over} times instead of {all}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::machines::MACHINES;
    use crate::testing::{pinned, two_processors};

    #[test]
    fn every_hand_over_is_one() {
        let Some((all, clock)) = two_processors() else { return };
        // A pinned thread has no pair, so the cases come first.
        let (mut context, cases) = (Context::here(), (BENCHMARK.cases)(&Topology::here()));
        pinned();
        for case in cases {
            let mut instance = instance(&case, &mut context).expect("two processors");
            // A wrong number of transfers would be an error.
            let order = Order::new(100);
            let batches: Vec<Batch> =
                (0..40).map(|_| instance.batch(clock, order).expect("a batch")).collect();
            if batches.iter().all(|batch| !batch.undisturbed) {
                eprintln!("skipped: other work had a processor all the time");
            }
        }
        cpu::allow(&all);
    }

    #[test]
    fn no_pair_is_measured_twice() {
        let pair = |params: &Params| {
            let (from, to) = (number(params, "from"), number(params, "to"));
            (from.min(to), from.max(to), word(params, "protocol").to_owned())
        };
        for machine in &MACHINES {
            let cases = BENCHMARK.cases_in(Extent::Thorough, &machine.topology());
            let pairs: BTreeSet<_> = cases.iter().map(pair).collect();
            assert_eq!(pairs.len(), cases.len(), "{}", machine.name);
        }
    }
}
