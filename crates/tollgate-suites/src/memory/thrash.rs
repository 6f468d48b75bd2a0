//! Two threads that store to every line of a buffer repeatedly: the published experiment (S. Takeuchi, "Cache thrashing on a
//! Ryzen 1800X", 2017). Here each thread has its own processor, the memory is pre-touched, values change, and checks show that
//! both ran at the same time and took lines from each other.
//!
//! In sequential order both threads begin at the same line, as in the experiment. Then they stay together, and each store waits
//! for a line that the other one has just written. Half a buffer apart, each finds lines that the other wrote long before, which
//! the prefetcher fetches: with small pages in 128 KiB a store took 1.5 ns that way, and 5.3 ns together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tollgate_engine::contended::{Outcome, WORDS};

use super::pairing::{self, related};
use super::region::{Amount, Page, Region};
use super::topology::Sizes;
use crate::prelude::*;

timed_loop! {
    /// Stores to 509 lines in order, and reads who last wrote the last of them: that samples the lines; the others are only
    /// stored to. The read waits until all stores before it have reached the caches, on both architectures. Words: 0: the buffer; 1: its size minus one line; 2: the current offset; 3: the value; 4: the count of sampled
    /// lines that the other thread wrote last; 6: the smallest value that counts.
    sequential:
        first "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]", "mov r9, [r13 + 32]",
        "mov r11, [r13 + 48]", "xor r14d, r14d";
        "mov edx, 508",
        "3:", "add rcx, 64", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8", "dec edx", "jne 3b",
        "add rcx, 64", "and rcx, rdi", "add r8, 2", "mov rax, r8", "xchg [rsi + rcx], rax",
        "mov rdx, rax", "xor rax, r8", "and eax, 1", "cmp rdx, r11", "cmovb rax, r14", "add r9, rax",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8", "mov [r13 + 32], r9";
    aarch64
        first "ldr x9, [x20]", "ldr x10, [x20, #8]", "ldr x11, [x20, #16]", "ldr x12, [x20, #24]", "ldr x13, [x20, #32]",
        "ldr x17, [x20, #48]";
        "mov w15, 508",
        "3:", "add x11, x11, 64", "and x11, x11, x10", "add x12, x12, 2", "str x12, [x9, x11]", "subs w15, w15, 1", "b.ne 3b",
        "add x11, x11, 64", "and x11, x11, x10", "add x12, x12, 2", "add x14, x9, x11",
        "4:", "ldaxr x0, [x14]", "stlxr w15, x12, [x14]", "cbnz w15, 4b",
        "eor x14, x0, x12", "and x14, x14, 1", "cmp x0, x17", "csel x14, xzr, x14, lo", "add x13, x13, x14",
        "str x11, [x20, #16]", "str x12, [x20, #24]", "str x13, [x20, #32]"
}

timed_loop! {
    /// Stores in an order that prefetchers cannot predict: a linear congruential generator of full period (Knuth, TAOCP 3.2.1.2).
    /// Word 5: its increment in bytes. The other words are the same.
    random:
        first "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]", "mov r9, [r13 + 32]",
        "mov r10, [r13 + 40]", "mov r11, [r13 + 48]", "xor r14d, r14d";
        "mov edx, 508",
        "3:", "lea rcx, [rcx + rcx * 4]", "add rcx, r10", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8",
        "dec edx", "jne 3b",
        "lea rcx, [rcx + rcx * 4]", "add rcx, r10", "and rcx, rdi", "add r8, 2", "mov rax, r8",
        "xchg [rsi + rcx], rax",
        "mov rdx, rax", "xor rax, r8", "and eax, 1", "cmp rdx, r11", "cmovb rax, r14", "add r9, rax",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8", "mov [r13 + 32], r9";
    aarch64
        first "ldr x9, [x20]", "ldr x10, [x20, #8]", "ldr x11, [x20, #16]", "ldr x12, [x20, #24]", "ldr x13, [x20, #32]",
        "ldr x16, [x20, #40]", "ldr x17, [x20, #48]";
        "mov w15, 508",
        "3:", "add x11, x11, x11, lsl 2", "add x11, x11, x16", "and x11, x11, x10", "add x12, x12, 2", "str x12, [x9, x11]",
        "subs w15, w15, 1", "b.ne 3b",
        "add x11, x11, x11, lsl 2", "add x11, x11, x16", "and x11, x11, x10", "add x12, x12, 2",
        "add x14, x9, x11",
        "4:", "ldaxr x0, [x14]", "stlxr w15, x12, [x14]", "cbnz w15, 4b",
        "eor x14, x0, x12", "and x14, x14, 1", "cmp x0, x17", "csel x14, xzr, x14, lo", "add x13, x13, x14",
        "str x11, [x20, #16]", "str x12, [x20, #24]", "str x13, [x20, #32]"
}

contending_loop! {
    /// The other thread's loop, 61 lines in an iteration.
    sequential_contending:
        "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]",
        "mov edx, 61",
        "3:", "add rcx, 64", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8", "dec edx", "jne 3b",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8";
    aarch64
        "ldr x9, [x20]", "ldr x10, [x20, #8]", "ldr x11, [x20, #16]", "ldr x12, [x20, #24]",
        "mov w15, 61",
        "3:", "add x11, x11, 64", "and x11, x11, x10", "add x12, x12, 2", "str x12, [x9, x11]", "subs w15, w15, 1", "b.ne 3b",
        "str x11, [x20, #16]", "str x12, [x20, #24]"
}

contending_loop! {
    random_contending:
        "mov rsi, [r13]", "mov rdi, [r13 + 8]", "mov rcx, [r13 + 16]", "mov r8, [r13 + 24]", "mov r10, [r13 + 40]",
        "mov edx, 61",
        "3:", "lea rcx, [rcx + rcx * 4]", "add rcx, r10", "and rcx, rdi", "add r8, 2", "mov [rsi + rcx], r8",
        "dec edx", "jne 3b",
        "mov [r13 + 16], rcx", "mov [r13 + 24], r8";
    aarch64
        "ldr x9, [x20]", "ldr x10, [x20, #8]", "ldr x11, [x20, #16]", "ldr x12, [x20, #24]",
        "ldr x16, [x20, #40]",
        "mov w15, 61",
        "3:", "add x11, x11, x11, lsl 2", "add x11, x11, x16", "and x11, x11, x10", "add x12, x12, 2", "str x12, [x9, x11]",
        "subs w15, w15, 1", "b.ne 3b",
        "str x11, [x20, #16]", "str x12, [x20, #24]"
}

/// Lines in an iteration of the timed loop: a prime, so that the sampled line changes.
const LINES: u64 = 509;
const LINE: u64 = 64;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/thrash",
    operation: "One store to a line of a buffer, line after line, while a thread on another processor stores to the same buffer, or to a private one.",
    avoid: "Give each processor memory of its own, and share only what is read.",
    source: "Intel Optimization Reference Manual, Multicore; Drepper, What Every Programmer Should Know About Memory, 2007",
    crosses: &[CacheLine, MemoryAccess, Tlb],
    timed: |params| {
        let loops = Steps::try_from(params).map(Steps::value);
        loops.map_or(NOT_TIMED, |(code, _)| Timed::Together { code, instruction: "mov/str", times: 1 })
    },
    unit: Unit::NanosecondsPerLine,
    share: Some(Share { what: "sampled lines came from the other processor", one_of: LINES }),
    cases: |machine| {
        let scaled = sizes(Sizes::of(machine));
        let published = ("sequential", Page::Small, &PUBLISHED[..]);
        let kinds = [("sequential", Page::Huge), ("random", Page::Huge), ("random", Page::Small)];
        let of_the_levels = kinds.map(|(order, page)| (order, page, &scaled[..]));
        cases(machine, &[&[published][..], &of_the_levels[..]].concat())
    },
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

words! {
    enum Steps("order"): (tollgate_engine::timed::LongLoop, ContendingLoop) {
        Sequential = "sequential" => (sequential, sequential_contending),
        Random = "random" => (random, random_contending),
    }
}

const PUBLISHED: [u64; 4] = [8, 128, 2 << 10, 16 << 10];

fn cases(machine: &Topology, kinds: &[(&str, Page, &[u64])]) -> Vec<Params> {
    let mut cases = Vec::new();
    for pair in pairing::words(machine) {
        for (order, page, sizes) in kinds {
            for &kib in *sizes {
                for shared in [false, true] {
                    cases.push(params(&[
                        ("kib", kib.into()),
                        ("shared", ParamValue::Flag(shared)),
                        ("pair", pair.clone()),
                        ("order", (*order).into()),
                        ("page", page.word().into()),
                    ]));
                }
            }
        }
    }
    cases
}

/// Returns sizes in KiB: a quarter of each cache level, which fits next to other data, and twice the last level. All are powers
/// of two: the quarters are rounded down, the last one up.
fn sizes(caches: Sizes) -> Vec<u64> {
    let quarter = |bytes: u64| 1 << (bytes / 4).max(4 << 10).ilog2();
    let twice = caches.last.saturating_mul(2).checked_next_power_of_two().unwrap_or(1 << 63);
    let mut sizes = vec![quarter(caches.l1), quarter(caches.l2), quarter(caches.last), twice];
    sizes.dedup();
    sizes.iter().map(|bytes| bytes >> 10).collect()
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let pair = related(word(params, "pair"), context)?;
    let caches = Sizes::shared(context);
    let bytes = number(params, "kib") << 10;
    let page = Page::try_from(params)?;
    let shared = params.get("shared") == Some(&ParamValue::Flag(true));
    let amount = Amount::new(bytes, caches);
    let buffers = buffers(page, amount, pair.to, context)?;
    let (own, theirs, notes) = {
        let both = locked(&buffers.regions);
        if let Some(why) = buffers.no_more.clone().filter(|_| bytes > both[0].length()) {
            return Err(why);
        }
        // The timed thread uses the same memory in both cases, since its physical location matters more.
        let (own, theirs) = (&both[0], if shared { &both[0] } else { &both[1] });
        let notes = own.notes().to_vec();
        (own.address(), theirs.address(), notes)
    };
    let steps = Steps::try_from(params)?;
    let (code, contending) = steps.value();
    let contender = Storing {
        buffers,
        own: Position::new(own, bytes, 0),
        theirs: Position::new(theirs, bytes, 1),
        since: 0,
        shared,
        meets: steps == Steps::Sequential,
        fits: bytes <= caches.last,
    };
    let partner = Partner { cpu: pair.to, code: contending, side: Box::default() };
    // SAFETY: both loops store to the first `bytes` of buffers that are at least this long and that the contender owns.
    let runner = unsafe { Contended::new(context, code, vec![partner], contender) }.on(pair.from);
    let instance =
        Instance::new(runner).with_ops(LINES).on_fixture(format!("thrash {amount:?} {}", page.word()));
    Ok(instance.with_notes([format!("processors {} and {}", pair.from, pair.to)]).with_notes(notes))
}

struct Both {
    regions: Mutex<[Region; 2]>,
    /// Why they are smaller than planned, if so.
    no_more: Option<Refusal>,
    batches: AtomicU64,
}

type Buffers = Arc<Both>;

/// Returns this process's two buffers of this page size and amount. Smaller cases use their beginning. The other processor has
/// stored once to all of the first one, since in a run it might not reach each line of a large buffer.
fn buffers(page: Page, amount: Amount, other: usize, context: &mut Context) -> Result<Buffers> {
    context.shared(&format!("{page:?} {amount:?}"), |context| {
        let (caches, quota) = (Sizes::shared(context), &context.quota);
        let largest =
            amount.bytes(sizes(caches).into_iter().chain(PUBLISHED).max().unwrap_or(4) << 10, caches);
        let ((shared, no_more), (own, _)) =
            (Region::at_most(largest, page, quota)?, Region::at_most(largest, page, quota)?);
        let regions = [touched_by(shared, other)?, own];
        Ok(Arc::new(Both { regions: Mutex::new(regions), no_more, batches: AtomicU64::new(0) }))
    })
}

fn touched_by(mut region: Region, other: usize) -> Result<Region> {
    let touch = move || {
        let there = cpu::pin(other);
        for (line, words) in region.words_mut().chunks_exact_mut((LINE / 8) as usize).enumerate() {
            words[0] = (line as u64) << 1 | 1;
        }
        there.map(|()| region)
    };
    let thread = std::thread::Builder::new().spawn(touch);
    let thread = thread.or_refused("no thread can be started")?;
    let touched = thread.join().map_err(|_| fail!("the other thread ended early"))?;
    touched.or_refused(&format!("a thread cannot be pinned to processor {other}"))
}

struct Position {
    buffer: u64,
    bytes: u64,
    offset: u64,
    /// The last bit of its values, which identifies the thread.
    who: u64,
}

/// The word with the current offset, in both loops.
const OFFSET: usize = 2;

/// Bits below the batch number in a batch's values.
const BATCH_SHIFT: u32 = 40;

impl Position {
    /// The first thread begins at the start, the second half a buffer ahead, unless they meet.
    fn new(buffer: u64, bytes: u64, who: u64) -> Self {
        let mut position = Self { buffer, bytes, offset: 0, who };
        if who == 1 {
            for _ in 0..position.lines() / 2 {
                position.offset = position.after(position.offset);
            }
        }
        position
    }

    fn lines(&self) -> u64 {
        self.bytes / LINE
    }

    /// Returns the odd multiple of a line nearest to the golden section. Any odd one gives the full period.
    fn increment(&self) -> u64 {
        ((self.lines() as f64 * 0.618) as u64 | 1) * LINE
    }

    fn after(&self, offset: u64) -> u64 {
        offset.wrapping_mul(5).wrapping_add(self.increment()) & (self.bytes - LINE)
    }

    /// Writes the position to a context or side. Values begin with `first`, and values below `since` do not count.
    fn write(&self, words: &mut [u64], first: u64, since: u64) {
        let (last, taken) = (self.bytes - LINE, 0);
        let own = [self.buffer, last, self.offset, first | self.who, taken, self.increment(), since];
        words[..own.len()].copy_from_slice(&own);
    }

    fn read(&mut self, words: &[u64]) {
        self.offset = words[OFFSET];
    }
}

struct Storing {
    buffers: Buffers,
    own: Position,
    theirs: Position,
    /// The smallest value that counts as the other thread's: 0 in a shared buffer.
    since: u64,
    shared: bool,
    /// True if both threads begin at the same line.
    meets: bool,
    /// True if the buffer fits into the last level.
    fits: bool,
}

impl Contender for Storing {
    fn before(&mut self, context: &mut LoopContext, partners: &mut [Partner], _iterations: u64) {
        let first = (self.buffers.batches.fetch_add(1, Relaxed) + 1) << BATCH_SHIFT;
        // In a shared buffer the last writer is the source of a line. Private buffers may contain earlier shared cases' values.
        self.since = if self.shared { 0 } else { first };
        self.own.write(&mut context.words, first, self.since);
        partners.iter_mut().for_each(|partner| self.theirs.write(&mut partner.side.words, first, 0));
    }

    fn begun(&mut self, context: &mut LoopContext, words: [u64; WORDS]) {
        if self.meets {
            context.words[OFFSET] = words[OFFSET];
        }
    }

    /// The warm-up caches the whole buffer if it fits.
    fn warm_up(&self) -> u64 {
        if self.fits { 2 * self.own.lines() / LINES + 1 } else { 16 }
    }

    fn begin(&mut self, context: &mut LoopContext) {
        context.words[4] = 0;
    }

    fn after(&mut self, context: &LoopContext, partners: &[Partner]) -> Result<Outcome> {
        self.own.read(&context.words);
        partners.iter().for_each(|partner| self.theirs.read(&partner.side.words));
        let taken = context.words[4];
        if taken > 0 && !self.shared {
            Err(fail!("{taken} lines of a private buffer came from another thread"))
        } else {
            Ok(Outcome::Sound(Some(taken)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pairing::shared_pairs;
    use super::*;
    use crate::testing::{pinned, ready, two_processors};

    #[test]
    fn both_orders_visit_every_line() {
        for bytes in [256, 4 << 10, 1 << 20] {
            let position = Position::new(0, bytes, 0);
            let mut seen = vec![false; position.lines() as usize];
            let mut offset = 0;
            for _ in 0..position.lines() {
                offset = position.after(offset);
                assert!(
                    !std::mem::replace(&mut seen[(offset / LINE) as usize], true),
                    "{bytes}: {offset} twice"
                );
            }
        }
    }

    #[test]
    fn sizes_are_quarters_of_the_levels_and_twice_the_last() {
        let caches = Sizes { l1: 48 << 10, l2: 1280 << 10, last: 48 << 20 };
        assert_eq!(sizes(caches), [8, 256, 8192, 131_072]);
        assert_eq!(sizes(Sizes { l1: 32 << 10, l2: 2 << 20, last: 2 << 20 }), [8, 512, 4096]);
    }

    #[test]
    fn lines_move_in_a_shared_buffer_and_never_in_private_ones() {
        let Some((all, clock)) = two_processors() else { return };
        let mut context = Context::here();
        pinned();
        for order in ["sequential", "random"] {
            for shared in [false, true] {
                let word = shared_pairs(&mut context)[0].relation.word();
                let case = params(&[
                    ("kib", sizes(Sizes::shared(&mut context))[0].into()),
                    ("shared", ParamValue::Flag(shared)),
                    ("pair", word.into()),
                    ("order", order.into()),
                    ("page", "4k".into()),
                ]);
                let Some(mut instance) = ready(&case, instance(&case, &mut context)) else { return };
                let batches = (0..40).map(|_| instance.batch(clock, Order::new(40)).expect("a batch"));
                let kept: Vec<u64> =
                    batches.filter(|batch| batch.undisturbed).filter_map(|batch| batch.counted).collect();
                let taken: u64 = kept.iter().sum();
                let looked_at = kept.len() as u64 * 40;
                if kept.is_empty() {
                    eprintln!("skipped: other work had a processor all the time");
                } else if shared {
                    assert!(taken > looked_at / 10, "{order}: {taken} of {looked_at}");
                } else {
                    assert_eq!(taken, 0, "{order}");
                }
            }
        }
        cpu::allow(&all);
    }

    #[test]
    fn a_side_is_large_enough_for_a_position() {
        let mut side = tollgate_engine::contended::Side::default();
        Position::new(64, 4096, 1).write(&mut side.words, 7 << BATCH_SHIFT, 0);
        assert_eq!((side.words[0], side.words[1], side.words[3]), (64, 4096 - 64, 7 << BATCH_SHIFT | 1));
    }
}
