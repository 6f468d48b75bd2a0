//! Memory bandwidth: passes through working sets of growing size, by the instructions that move the bytes.
//!
//! The operation is 4 KiB of a pass, so that a batch moves the same bytes in each size and takes the time of other
//! batches. The loop goes on where it stopped. Before each batch it passes once through the working set, or through as
//! much as the last-level cache holds: so a small set is cached, and a large one finds the cache full of what the same
//! operation left there, modified lines among it, whose write-back belongs to what is measured.

use std::sync::{Arc, Mutex};

use super::region::{Amount, Page, Region};
use super::topology::Sizes;
use crate::prelude::*;

mod loops;
mod pass;

use loops::{By, Op, code};
use pass::{Expected, PAGE, Set, number as number_words};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/bandwidth",
    operation: "4 KiB of a pass through a working set of this size: read and summed, written, written past the caches, copied from one half to the other, or filled.",
    avoid: "Work on a block while it is cached, and write past the caches what is not read again soon.",
    source: "McVoy and Staelin, lmbench, USENIX 1996 (bw_mem); Intel Optimization Reference Manual, Optimizing Cache Usage",
    crosses: &[MemoryAccess, Tlb],
    timed: |params| match chosen(params).and_then(|(op, by)| code(op, by)) {
        Some((code, instruction, times)) => Timed::Together { code, instruction, times },
        None => Timed::Whole("no such instruction"),
    },
    cases: || usual(Sizes::here(&cpu::allowed()).last),
    thorough_cases: || {
        let last = Sizes::here(&cpu::allowed()).last;
        let usual = usual(last);
        let every = all(last).into_iter();
        every.filter(|case| !usual.contains(case)).collect()
    },
    bytes: |_| Some(PAGE),
    headlines: &[Headline {
        section: Section::Memory,
        name: "read 4 KiB from memory",
        params: &[("op", "read"), ("page", "2m")],
    }],
    kind: Kind::Instance(|timed, params, context| instance(timed, params, context)),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

fn chosen(params: &Params) -> Option<(Op, By)> {
    Some((Op::from_word(word(params, "op"))?, By::from_word(word(params, "by"))?))
}

/// The instructions of an operation's curve. Most processors have them, so that machines are compared by the same.
fn usual_by(op: Op) -> By {
    if op == Op::Fill { By::Rep } else { By::Avx2 }
}

/// Sizes in KiB from 16 KiB, each four times the one before, to four times the last level.
fn sizes(last_level: u64) -> Vec<u64> {
    const SMALLEST: u64 = 16;
    let largest = (last_level.saturating_mul(4) >> 10).max(SMALLEST);
    let mut sizes: Vec<u64> = std::iter::successors(Some(SMALLEST), |kib| kib.checked_mul(4))
        .take_while(|&kib| kib < largest)
        .collect();
    sizes.push(largest);
    sizes
}

fn case(op: Op, by: By, kib: u64, page: Page) -> Params {
    params(&[
        ("op", op.word().into()),
        ("by", by.word().into()),
        ("kib", kib.into()),
        ("page", page.word().into()),
        ("threads", 1.into()),
    ])
}

/// A curve of reads, writes and copies; of the others a cached size and memory.
fn usual(last_level: u64) -> Vec<Params> {
    let sizes = sizes(last_level);
    let (cached, largest) = (sizes.get(2).copied(), sizes.last().copied().unwrap_or_default());
    let mut cases = Vec::new();
    for op in Op::ALL {
        let is_curve = matches!(op, Op::Read | Op::Write | Op::Copy);
        let is_drawn = |kib: &&u64| is_curve || Some(**kib) == cached || **kib == largest;
        cases.extend(sizes.iter().filter(is_drawn).map(|&kib| case(op, usual_by(op), kib, Page::Small)));
        if is_curve {
            cases.push(case(op, usual_by(op), largest, Page::Huge));
        }
    }
    cases.push(case(Op::Copy, By::Rep, largest, Page::Small));
    cases
}

/// Every operation by every instruction.
fn all(last_level: u64) -> Vec<Params> {
    let ways = Op::ALL.into_iter().flat_map(|op| By::ALL.map(|by| (op, by)));
    let ways = ways.filter(|&(op, by)| code(op, by).is_some());
    let sizes = sizes(last_level);
    ways.flat_map(|(op, by)| sizes.iter().map(move |&kib| (op, by, kib)))
        .flat_map(|(op, by, kib)| [Page::Small, Page::Huge].map(|page| case(op, by, kib, page)))
        .collect()
}

fn instance(timed: Timed, params: &Params, context: &mut Context) -> Result<Instance> {
    let (op, by) = chosen(params).ok_or_else(|| fail!("it has no such operation"))?;
    let (code, ..) = code(op, by).ok_or_else(|| fail!("no loop does that by {}", by.word()))?;
    by.is_here()?;
    let bytes = number(params, "kib") << 10;
    let page = Page::from_word(word(params, "page"));
    let caches = Sizes::shared(context);
    let amount = Amount::of(bytes, caches);
    let memory = memory(page, amount, context)?;
    let (set, notes) = {
        let memory = locked(&memory);
        if let Some(why) = memory.no_more.clone().filter(|_| bytes > memory.read.length()) {
            return Err(why);
        }
        let (read, written) = (memory.read.address(), memory.written.address());
        let start = if matches!(op, Op::Read | Op::Copy) { read } else { written };
        (Set { op, start, to: written, bytes }, memory.read.notes().to_vec())
    };
    let warm_up = bytes.min(caches.last).div_ceil(set.chunk());
    let hooks = Passes { memory, set, code, warm_up, value: 0, expected: None, is_warm: false };
    // SAFETY: the loop stays within the first `bytes` of the memory that the hooks own, and has the registers (`is_here`).
    let timed = unsafe { Loop::new(timed, set.words(0, 0), None, |_| Ok(())) }?;
    let instance = timed.with_hooks(hooks).here().with_ops(set.chunk() / PAGE);
    Ok(instance.on_fixture(format!("bandwidth {amount:?} {}", page.word())).with_notes(notes))
}

/// The memory of one page size: its words are their own numbers where it is read.
struct Memory {
    read: Region,
    written: Region,
    /// Why it is smaller than planned, if so.
    no_more: Option<Refusal>,
}

type SharedMemory = Arc<Mutex<Memory>>;

/// The memory of this page size and amount in this process; smaller sets use its beginning.
fn memory(page: Page, amount: Amount, context: &mut Context) -> Result<SharedMemory> {
    context.shared(&format!("bandwidth {page:?} {amount:?}"), |context| {
        let caches = Sizes::shared(context);
        let largest = sizes(caches.last).last().copied().unwrap_or_default() << 10;
        let bytes = amount.bytes(largest, caches);
        let (mut read, no_more) = Region::at_most(bytes, page, &context.quota)?;
        let (written, _) = Region::at_most(bytes, page, &context.quota)?;
        number_words(read.words_mut());
        Ok(Arc::new(Mutex::new(Memory { read, written, no_more })))
    })
}

/// Passes through the working set before each batch, and checks what the batch moved.
struct Passes {
    memory: SharedMemory,
    set: Set,
    code: LongLoop,
    /// Iterations of the pass before a batch.
    warm_up: u64,
    /// What the latest batch stored: another number in each.
    value: u64,
    expected: Option<Expected>,
    /// The pass before this batch has been made.
    is_warm: bool,
}

impl BatchHooks for Passes {
    fn before(&mut self, context: &mut LoopContext, iterations: u64) -> Result<()> {
        if !self.is_warm {
            // SAFETY: the loop's own context, as in the batch.
            unsafe { self.code.run(self.warm_up, context) };
        }
        self.is_warm = !self.is_warm;
        self.value = self.value.wrapping_add(1);
        let offset = context.words[2];
        context.words = self.set.words(offset, self.value);
        let mut memory = locked(&self.memory);
        self.expected = Some(self.set.expect(memory.written.words_mut(), offset, iterations, self.value));
        Ok(())
    }

    fn after(&mut self, context: &LoopContext) -> Result<Option<u64>> {
        let Some(expected) = self.expected.take() else { return Ok(None) };
        let mut memory = locked(&self.memory);
        self.set.check(memory.written.words_mut(), expected, context.result)?;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pinned, ready};

    #[test]
    fn every_operation_moves_what_it_should_by_every_instruction() {
        let mut context = Context::here();
        pinned();
        for op in Op::ALL {
            for by in By::ALL.into_iter().filter(|&by| code(op, by).is_some()) {
                for kib in [16, 1 << 10] {
                    let case = case(op, by, kib, Page::Small);
                    let made = instance((BENCHMARK.timed)(&case), &case, &mut context);
                    let Some(mut instance) = ready(&case, made) else { continue };
                    // Wrong sums and words are errors; a set wraps in some of the batches.
                    for iterations in [1, 3, 64] {
                        instance.batch(Clock::Kernel, Order::of(iterations)).expect("a batch");
                    }
                }
            }
        }
    }

    #[test]
    fn a_cached_set_is_read_faster_than_memory() {
        let mut context = Context::here();
        pinned();
        let largest = sizes(Sizes::shared(&mut context).last).last().copied().expect("a size").min(256 << 10);
        let mut least = |kib| {
            let case = case(Op::Read, By::Sse2, kib, Page::Small);
            let mut instance = ready(&case, instance((BENCHMARK.timed)(&case), &case, &mut context))?;
            let iterations = (1 << 20) / (kib << 10).min(256 << 10);
            let batches =
                (0..8).map(|_| instance.batch(Clock::Kernel, Order::of(iterations)).expect("a batch"));
            batches.map(|batch| batch.work).min()
        };
        let (Some(cached), Some(memory)) = (least(16), least(largest)) else { return };
        assert!(memory * 2 > cached * 3, "{cached} ns cached, {memory} ns from memory");
    }

    #[test]
    fn sizes_go_from_the_first_level_to_four_times_the_last() {
        assert_eq!(sizes(32 << 20), [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10]);
        assert_eq!(sizes(0), [16]);
        let usual = usual(32 << 20);
        assert!(usual.len() < 40, "{}", usual.len());
        let all = all(32 << 20);
        assert!(usual.iter().all(|case| all.contains(case)));
    }
}
