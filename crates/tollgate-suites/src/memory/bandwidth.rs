//! Memory bandwidth: passes through working sets of growing size, by the instructions that move the bytes.
//!
//! The operation is 4 KiB of a pass, so that a batch moves the same bytes at each size and takes as long as other batches. The
//! loop continues where it stopped. Before each batch it passes through the working set, or through as much as the last-level
//! cache holds, until the times of a stretch repeat. So a small set is cached. A large one finds the cache full of what the same
//! operation left there, including modified lines, whose write-back is part of the measurement.

use std::sync::{Arc, Mutex};

use super::region::{Amount, Page, Region};
use super::topology::{Sizes, sharers};
use crate::prelude::*;

mod loops;
mod pass;
mod together;

use loops::{By, Op, code, is_on};
use pass::{Moved, PAGE, Set, number as number_words};

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/bandwidth",
    operation: "4 KiB of a pass by each thread through a working set of its own of this size: read and summed, written, written past the caches, copied from one half to the other, or filled.",
    avoid: "Work on a block while it is cached, and write past the caches what is not read again soon.",
    source: "McVoy and Staelin, lmbench, USENIX 1996 (bw_mem); Intel Optimization Reference Manual, Optimizing Cache Usage",
    crosses: &[MemoryAccess, Tlb],
    timed: |params| match chosen(params).ok().and_then(|(op, by)| code(op, by)) {
        Some((code, instruction, times)) => Timed::Together { code, instruction, times },
        None => NOT_TIMED,
    },
    cases: |machine| {
        let last = Sizes::of(machine).last;
        usual(machine.architecture, last).into_iter().chain(of_all_processors(machine)).collect()
    },
    thorough_cases: |machine| {
        let last = Sizes::of(machine).last;
        let usual = usual(machine.architecture, last);
        let every = all(machine.architecture, last).into_iter();
        every.filter(|case| !usual.contains(case)).collect()
    },
    in_everything: says_most,
    bytes: |params| Some(PAGE * number(params, "threads").max(1)),
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

/// Selects memory by each operation, reads and copies by all processors, and reads from the caches of this core.
fn says_most(params: &Params, machine: &Topology) -> bool {
    let Ok((op, by)) = chosen(params) else { return false };
    let caches = Sizes::of(machine);
    let kib = number(params, "kib");
    let is_memory = sizes(caches.last).last() == Some(&kib);
    match (op, word(params, "page") == Page::Small.word()) {
        (Op::Read | Op::Copy, true) if number(params, "threads") > 1 => true,
        (Op::Read, is_small) => is_memory || is_small && kib << 10 <= caches.l2,
        (_, is_small) => is_memory && is_small && by == usual_by(op, machine.architecture),
    }
}

fn chosen(params: &Params) -> Result<(Op, By)> {
    Ok((Op::try_from(params)?, By::try_from(params)?))
}

/// The instructions of an operation's curve. Most processors have them, so machines can be compared.
fn usual_by(op: Op, on: Architecture) -> By {
    match op {
        Op::Fill => By::Rep,
        Op::Zero => By::Zva,
        _ => By::Avx2.or(By::Neon, op, on),
    }
}

/// Returns sizes in KiB: 16 and each four times the one before, up to four times the last level.
fn sizes(last_level: u64) -> Vec<u64> {
    const SMALLEST: u64 = 16;
    let largest = (last_level.saturating_mul(4) >> 10).max(SMALLEST);
    let mut sizes: Vec<u64> = std::iter::successors(Some(SMALLEST), |kib| kib.checked_mul(4))
        .take_while(|&kib| kib < largest)
        .collect();
    sizes.push(largest);
    sizes
}

fn case(op: Op, by: By, kib: u64, page: Page, threads: u64) -> Params {
    params(&[
        ("op", op.word().into()),
        ("by", by.word().into()),
        ("kib", kib.into()),
        ("page", page.word().into()),
        ("threads", threads.into()),
    ])
}

/// The operations of an architecture, each by the instructions of its curve.
fn usual_ways(on: Architecture) -> impl Iterator<Item = (Op, By)> {
    Op::ALL.iter().map(move |&op| (op, usual_by(op, on))).filter(move |&(op, by)| is_on(on, op, by))
}

/// A curve for reads, writes and copies; for the other operations a cached size and the largest one.
fn usual(on: Architecture, last_level: u64) -> Vec<Params> {
    let sizes = sizes(last_level);
    let (cached, largest) = (sizes.get(2).copied(), sizes.last().copied().unwrap_or_default());
    let mut cases = Vec::new();
    for (op, by) in usual_ways(on) {
        let is_curve = matches!(op, Op::Read | Op::Write | Op::Copy);
        let is_drawn = |kib: &&u64| is_curve || Some(**kib) == cached || **kib == largest;
        cases.extend(sizes.iter().filter(is_drawn).map(|&kib| case(op, by, kib, Page::Small, 1)));
        if is_curve {
            cases.push(case(op, by, largest, Page::Huge, 1));
        }
    }
    if is_on(on, Op::Copy, By::Rep) {
        cases.push(case(Op::Copy, By::Rep, largest, Page::Small, 1));
    }
    cases
}

fn of_all_processors(machine: &Topology) -> Vec<Params> {
    let threads = machine.parallelism() as u64;
    let kib = of_each_thread(Sizes::of(machine), sharers(machine));
    let ways = usual_ways(machine.architecture).filter(|_| threads > 1);
    ways.map(|(op, by)| case(op, by, kib, Page::Small, threads)).collect()
}

/// Returns the KiB of each of the `sharers` of a last-level cache: together four times that cache, each at least four times L2.
fn of_each_thread(caches: Sizes, sharers: u64) -> u64 {
    let together = caches.last.saturating_mul(4) / sharers.max(1);
    together.max(caches.l2.saturating_mul(4)).next_multiple_of(1 << 20) >> 10
}

/// Every operation by every instruction, and the usual ones in pages of both sizes.
fn all(on: Architecture, last_level: u64) -> Vec<Params> {
    let ways = Op::ALL.iter().copied().flat_map(|op| By::ALL.iter().map(move |&by| (op, by)));
    let sizes = sizes(last_level);
    let ends = [sizes.first(), sizes.get(2), sizes.last()].map(|kib| kib.copied().unwrap_or_default());
    let mut cases = Vec::new();
    for (op, by) in ways.filter(|&(op, by)| is_on(on, op, by)) {
        let is_usual = by == usual_by(op, on);
        for &kib in sizes.iter().filter(|kib| is_usual || ends.contains(kib)) {
            cases.extend([Page::Small, Page::Huge].map(|page| case(op, by, kib, page, 1)));
        }
    }
    cases
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let (op, by) = chosen(params)?;
    let (code, ..) = code(op, by).ok_or_else(|| fail!("no loop does that by {}", by.word()))?;
    by.is_here()?;
    let bytes = number(params, "kib") << 10;
    let page = Page::try_from(params)?;
    let threads = number(params, "threads") as usize;
    if threads > 1 {
        return together::instance((op, by), bytes, page, threads, context);
    }
    let caches = Sizes::shared(context);
    let amount = Amount::new(bytes, caches);
    let memory = memory(page, amount, context)?;
    let (set, notes) = {
        let mut memory = locked(&memory);
        if let Some(why) = memory.no_more.clone().filter(|_| bytes > memory.read.length()) {
            return Err(why);
        }
        if op != Op::Read && memory.written.is_none() {
            let length = memory.read.length() as usize;
            memory.written = Some(Region::new(length, page, &context.quota)?);
        }
        let read = memory.read.address();
        let written = memory.written.as_ref().map_or(read, Region::address);
        let start = if matches!(op, Op::Read | Op::Copy) { read } else { written };
        (Set { op, start, to: written, bytes }, memory.read.notes().to_vec())
    };
    let instance = passes(memory, set, code, caches, context)?;
    Ok(instance.on_fixture(format!("bandwidth {amount:?} {}", page.word())).with_notes(notes))
}

/// Reads a whole region, after setting each word to its own index.
pub(super) fn of_region(mut region: Region, caches: Sizes, context: &Context) -> Result<Instance> {
    let op = Op::Read;
    let (code, ..) =
        code(op, By::Sse2.or(By::Neon, op, HERE)).ok_or_else(|| fail!("there is no such loop"))?;
    let set = Set { op, start: region.address(), to: region.address(), bytes: region.length() };
    number_words(region.words_mut());
    let notes = region.notes().to_vec();
    let memory = Memory { read: region, written: None, no_more: None };
    Ok(passes(Arc::new(Mutex::new(memory)), set, code, caches, context)?.with_notes(notes))
}

fn passes(
    memory: SharedMemory,
    set: Set,
    code: LongLoop,
    caches: Sizes,
    context: &Context,
) -> Result<Instance> {
    let passed = set.of_a_pass().min(caches.last).div_ceil(set.chunk());
    let settling = Settling::after(passed, context.heartbeat.clone());
    let hooks = Passes { memory, set, value: 0, expected: None };
    // SAFETY: the loop stays within the first `bytes` of the hooks' memory, and the processor has its registers (`is_here`).
    let timed = unsafe {
        let timed = Timed::Together { code, instruction: "", times: 0 };
        Loop::new(timed, set.words(0, 0), None, |_| Ok(()))
    }?;
    Ok(timed.settled(settling).with_hooks(hooks).here().with_ops(set.chunk() / PAGE))
}

/// The memory for one page size. Each word of the part that is read contains its own index.
struct Memory {
    read: Region,
    /// `None` until something is written.
    written: Option<Region>,
    /// Why it is smaller than planned, if so.
    no_more: Option<Refusal>,
}

type SharedMemory = Arc<Mutex<Memory>>;

/// Returns this process's memory of this page size and amount. Smaller sets use its beginning.
fn memory(page: Page, amount: Amount, context: &mut Context) -> Result<SharedMemory> {
    context.shared(&format!("bandwidth {page:?} {amount:?}"), |context| {
        let caches = Sizes::shared(context);
        let largest = sizes(caches.last).last().copied().unwrap_or_default() << 10;
        let bytes = amount.bytes(largest, caches);
        let (mut read, no_more) = Region::at_most(bytes, page, &context.quota)?;
        number_words(read.words_mut());
        Ok(Arc::new(Mutex::new(Memory { read, written: None, no_more })))
    })
}

impl Memory {
    fn written(&mut self) -> &mut [u64] {
        self.written.as_mut().map_or(&mut [], Region::words_mut)
    }
}

struct Passes {
    memory: SharedMemory,
    set: Set,
    /// The value that the latest batch stored, different in each batch.
    value: u64,
    expected: Option<Moved>,
}

impl BatchHooks for Passes {
    fn before(&mut self, context: &mut LoopContext, iterations: u64) -> Result<()> {
        self.value = self.value.wrapping_add(1);
        let offset = context.words[2];
        context.words = self.set.words(offset, self.value);
        let mut memory = locked(&self.memory);
        self.expected = Some(self.set.expect(memory.written(), offset, iterations, self.value));
        Ok(())
    }

    fn after(&mut self, context: &LoopContext) -> Result<Option<u64>> {
        let Some(expected) = self.expected.take() else { return Ok(None) };
        let mut memory = locked(&self.memory);
        self.set.check(memory.written(), expected, context.result)?;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{is_translated, pinned, ready};

    #[test]
    fn every_operation_moves_what_it_should_by_every_instruction() {
        let mut context = Context::here();
        pinned();
        for &op in Op::ALL {
            for by in By::ALL.iter().copied().filter(|&by| is_on(HERE, op, by)) {
                for kib in [16, 1 << 10] {
                    let case = case(op, by, kib, Page::Small, 1);
                    let made = instance(&case, &mut context);
                    let Some(mut instance) = ready(&case, made) else { continue };
                    // Wrong sums and words are errors; a set wraps in some of the batches.
                    for iterations in [1, 3, 64] {
                        instance.batch(Clock::Kernel, Order::new(iterations)).expect("a batch");
                    }
                }
            }
        }
    }

    #[test]
    fn threads_pass_through_memory_of_their_own_at_the_same_time() {
        let all = cpu::allowed();
        let threads = all.len().min(2) as u64;
        let mut context = Context::here();
        pinned();
        for (op, usual) in usual_ways(HERE) {
            let by = if usual == By::Avx2 { By::Sse2 } else { usual };
            let case = case(op, by, 1 << 10, Page::Small, threads);
            let made = match threads {
                1 => Err(Refusal::one_processor()),
                _ => instance(&case, &mut context),
            };
            let Some(mut instance) = ready(&case, made) else { continue };
            // Wrong sums and words are errors.
            for _ in 0..4 {
                let batch = instance.batch(Clock::Kernel, Order::new(1)).expect("a batch");
                assert!(batch.work > 0, "{case:?}");
            }
        }
        cpu::allow(&all);
    }

    #[test]
    fn all_threads_together_have_more_than_their_caches() {
        let caches = Sizes { l1: 32 << 10, l2: 2 << 20, last: 96 << 20 };
        assert_eq!(of_each_thread(caches, 96), 8 << 10);
        assert_eq!(of_each_thread(caches, 2), 192 << 10);
        assert_eq!(of_each_thread(caches, 0), 384 << 10);
    }

    #[test]
    fn a_cached_set_is_read_faster_than_memory() {
        if is_translated() {
            return;
        }
        let mut context = Context::here();
        pinned();
        let largest = sizes(Sizes::shared(&mut context).last).last().copied().expect("a size").min(256 << 10);
        let mut least = |kib| {
            let case = case(Op::Read, By::Sse2.or(By::Neon, Op::Read, HERE), kib, Page::Small, 1);
            let mut instance = ready(&case, instance(&case, &mut context))?;
            let iterations = (1 << 20) / (kib << 10).min(256 << 10);
            let batches =
                (0..8).map(|_| instance.batch(Clock::Kernel, Order::new(iterations)).expect("a batch"));
            batches.map(|batch| batch.work).min()
        };
        let (Some(cached), Some(memory)) = (least(16), least(largest)) else { return };
        assert!(memory * 2 > cached * 3, "{cached} ns cached, {memory} ns from memory");
    }

    #[test]
    fn sizes_go_from_the_first_level_to_four_times_the_last() {
        assert_eq!(sizes(32 << 20), [16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 128 << 10]);
        assert_eq!(sizes(0), [16]);
        let usual = usual(HERE, 32 << 20);
        assert!(usual.len() < 40, "{}", usual.len());
        let all = all(HERE, 32 << 20);
        assert!(usual.iter().all(|case| all.contains(case)));
    }
}
