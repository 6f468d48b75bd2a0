//! False sharing: two words at some distance, each modified by another processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tollgate_engine::contended::Outcome;

use super::pairing::two_cores;
use crate::prelude::*;

timed_loop! {
    /// Adds to a word, atomically although no other thread changes it, like a counter or a lock next to another one. A
    /// plain addition would wait in the store buffer and take no longer on many processors. Word 0: its address.
    add:
        first "mov rcx, [r13]";
        ".rept 8", "lock add qword ptr [rcx], 1", ".endr";
    aarch64
        first ".arch_extension lse", "ldr x9, [x20]", "mov x10, 1";
        ".rept 8", "ldaddal x10, x0, [x9]", ".endr"
}

contending_loop! {
    add_contending:
        "mov rcx, [r13]",
        ".rept 8", "lock add qword ptr [rcx], 1", ".endr";
    aarch64
        ".arch_extension lse", "ldr x9, [x20]", "mov x10, 1",
        ".rept 8", "ldaddal x10, x0, [x9]", ".endr"
}

/// Operations in an iteration of each loop.
const OPERATIONS: u64 = 8;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/neighbour",
    operation: "One atomic addition to a private word while another processor adds to a word this many bytes away: in the same line (false sharing), in the adjacent line of the pair, or beyond.",
    avoid: "Keep words of different threads 128 bytes apart: the line and the line that is fetched beside it.",
    source: "Intel Optimization Reference Manual, Avoid False Sharing",
    crosses: &[Atomic, CacheLine],
    beside: &[("memory/pingpong", "a line from core to core and back")],
    timed: |_| Timed::Loop {
        code: TimedLoop::Long(add),
        instruction: "lock add/ldaddal",
        times: OPERATIONS as usize,
    },
    cases: |_| each("distance", &[8, 64, 128]),
    kind: Kind::Instance(|_, params, context| {
        checks::atomics()?;
        let pair = two_cores(context)?;
        let distance = (number(params, "distance") as usize / 8).min(WORDS - 1);
        let contender = OwnWords {
            words: Arc::new(Words([const { AtomicU64::new(0) }; WORDS])),
            distance,
            iterations: 0,
        };
        let partner = Partner { cpu: pair.to, code: add_contending, side: Box::default() };
        // SAFETY: each loop changes one word of those that the contender keeps.
        let runner = unsafe { Contended::new(context, add, vec![partner], contender) }.on(pair.from);
        Ok(Instance::new(runner).with_ops(OPERATIONS).with_notes([pair.in_words()]))
    }),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

/// Two pairs of cache lines.
const WORDS: usize = 32;

#[repr(align(256))]
struct Words([AtomicU64; WORDS]);

struct OwnWords {
    words: Arc<Words>,
    distance: usize,
    iterations: u64,
}

impl Contender for OwnWords {
    fn before(&mut self, context: &mut LoopContext, partners: &mut [Partner], iterations: u64) {
        self.words.0.iter().for_each(|word| word.store(0, SeqCst));
        self.iterations = iterations;
        context.words[0] = self.words.0[0].as_ptr() as u64;
        let theirs = self.words.0[self.distance].as_ptr() as u64;
        partners.iter_mut().for_each(|partner| partner.side.words[0] = theirs);
    }

    fn after(&mut self, _: &LoopContext, partners: &[Partner]) -> Result<Outcome> {
        let value = |at: usize| self.words.0[at].load(SeqCst);
        let theirs: u64 = partners.iter().map(|partner| partner.side.iterations()).sum();
        let sums = [value(0), value(self.distance)];
        if sums == [self.iterations * OPERATIONS, theirs * OPERATIONS] {
            Ok(Outcome::Sound(None))
        } else {
            Err(fail!("two threads that added to private words made {sums:?}"))
        }
    }
}
