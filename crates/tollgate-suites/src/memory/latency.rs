//! Memory latency: dependent loads at random lines of working sets of growing size.
//!
//! A batch begins in the state that its own use leaves. Before it the cycle of lines is followed, untimed: all of it, or as many
//! lines as the caches hold, and then until the times of a stretch repeat ([`Settling`]). One buffer serves every size of a page
//! size; a size whose cycle is not there writes it first. Writing alone would leave another state: more lines cached that were just
//! written in address order than the walk keeps there, and fewer lines of the page tables. The order is an invertible mixing of
//! line numbers, which no prefetcher predicts.

use std::sync::{Arc, Mutex};

use super::region::{Amount, Page, Region};
use super::topology::Sizes;
use crate::prelude::*;

timed_loop! {
    /// Follows a chain of lines, each of which holds the address of the next one. It begins at the last result: the word after
    /// the seven words is the last loaded address.
    ///
    /// An iteration has sixteen loads: the counter runs in parallel, and its time is subtracted although it adds none.
    chase:
        first "mov rax, [r13 + 56]";
        ".rept 16", "mov rax, [rax]", ".endr";
    aarch64
        first "ldr x0, [x20, #56]";
        ".rept 16", "ldr x0, [x0]", ".endr"
}

pub(super) const CHASE: LongLoop = chase;
pub(super) const LOADS: usize = 16;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/latency",
    operation: "One dependent load at a random line of a working set of this size.",
    avoid: "Keep the working set within a cache, use huge pages for random access, and lay data out in the order of access.",
    source: "Intel Optimization Reference Manual, Memory; McVoy and Staelin, lmbench, USENIX 1996",
    crosses: &[MemoryAccess, Tlb],
    timed: |_| Timed::Loop { code: TimedLoop::Long(chase), instruction: "mov/ldr", times: LOADS },
    cases: |machine| cases(sizes(Sizes::of(machine).last, 1)),
    thorough_cases: |machine| {
        let last = Sizes::of(machine).last;
        let usual = sizes(last, 1);
        cases(sizes(last, 8).into_iter().filter(|size| !usual.contains(size)).collect())
    },
    in_everything: says_most,
    headlines: &[
        Headline::of(Section::Loads, "16K", &[("kib", "16"), ("page", "4k")]),
        Headline::of(Section::Loads, "128K", &[("kib", "128"), ("page", "4k")]),
        Headline::of(Section::Loads, "4M", &[("kib", "4096"), ("page", "4k")]),
        Headline::of(Section::Loads, "128M", &[("kib", "131072"), ("page", "4k")]),
    ],
    kind: Kind::Instance(|timed, params, context| {
        let bytes = (number(params, "kib") << 10) as usize;
        let page = Page::try_from(params)?;
        let amount = Amount::new(bytes as u64, Sizes::shared(context));
        let (field, caches) = (field(page, amount, context)?, Sizes::shared(context));
        {
            let field = locked(&field);
            if let Some(why) = field.no_more.clone().filter(|_| bytes as u64 > field.region.length()) {
                return Err(why);
            }
        }
        let instance = walk(timed, field, bytes, caches, context)?;
        Ok(instance.on_fixture(format!("latency {amount:?} {}", page.word())))
    }),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

pub(super) fn of_region(region: Region, caches: Sizes, context: &Context) -> Result<Instance> {
    let bytes = region.length() as usize;
    let field = Arc::new(Mutex::new(Field { region, no_more: None, written: None }));
    let timed = Timed::Loop { code: TimedLoop::Long(chase), instruction: "mov/ldr", times: LOADS };
    walk(timed, field, bytes, caches, context)
}

/// Follows all lines, or as many as the caches hold, before it looks for a steady state.
pub(super) fn settling(lines: u64, caches: Sizes, context: &Context) -> Settling {
    let followed = lines.min(caches.last.div_ceil(LINE as u64));
    Settling::after(followed.div_ceil(LOADS as u64), context.heartbeat.clone())
}

fn walk(
    timed: Timed,
    field: SharedField,
    bytes: usize,
    caches: Sizes,
    context: &Context,
) -> Result<Instance> {
    let (first, last, notes) = {
        let field = locked(&field);
        let first = field.region.address();
        (first, first + bytes as u64, field.region.notes().to_vec())
    };
    let inside = move |result: u64| match result {
        address if (first..last).contains(&address) && address % LINE as u64 == 0 => Ok(()),
        address => {
            Err(format!("the last load returned {address:#x}, which is not a line of the working set"))
        }
    };
    // SAFETY: before each batch `Walk` writes the cycle within the region that it owns, and the result is an address in it.
    let timed = unsafe { Loop::new(timed, [0; 7], None, inside) }?;
    let timed =
        timed.settled(settling((bytes / LINE) as u64, caches, context)).with_hooks(Walk { field, bytes });
    Ok(timed.here().with_ops(LOADS as u64).with_notes(notes))
}

const SMALLEST: u64 = 4 << 10;
/// The largest size, as a multiple of the last level.
const BEYOND: u64 = 4;

/// Returns sizes in KiB from 4 KiB to four times the last level, `an_octave` for each doubling.
fn sizes(last_level: u64, an_octave: u32) -> Vec<u64> {
    let largest = last_level.saturating_mul(BEYOND).max(SMALLEST) >> 10;
    let steps = (0..).map(|step| {
        let octaves = f64::from(step) / f64::from(an_octave);
        ((SMALLEST >> 10) as f64 * octaves.exp2()).round() as u64
    });
    let mut sizes: Vec<u64> = steps.take_while(|&kib| kib < largest).collect();
    sizes.push(largest);
    sizes.dedup();
    sizes
}

/// Every second size in small pages, those of the first screen, and the largest in huge pages. Each other size beyond the caches
/// would take a tenth of a second in each process.
fn says_most(params: &Params, machine: &Topology) -> bool {
    let kib = number(params, "kib");
    let is_largest = sizes(Sizes::of(machine).last, 1).last() == Some(&kib);
    let is_drawn = kib.is_power_of_two() && kib.trailing_zeros().is_multiple_of(2) && kib <= 4096;
    let is_shown = BENCHMARK.headlines.iter().any(|headline| headline.names(params));
    is_largest || is_shown || (is_drawn && word(params, "page") == Page::Small.word())
}

fn cases(sizes: Vec<u64>) -> Vec<Params> {
    let pages = [Page::Small, Page::Huge];
    let case = |page: Page, kib: u64| params(&[("kib", kib.into()), ("page", page.word().into())]);
    pages.into_iter().flat_map(|page| sizes.iter().map(move |&kib| case(page, kib))).collect()
}

/// Line size of every x86-64 processor, in bytes.
const LINE: usize = 64;

/// The memory of one page size. All sizes share it: each writes its cycle through the first bytes.
struct Field {
    region: Region,
    /// Why it is smaller than planned, if so.
    no_more: Option<Refusal>,
    /// The size whose cycle is written there.
    written: Option<usize>,
}

type SharedField = Arc<Mutex<Field>>;

fn field(page: Page, amount: Amount, context: &mut Context) -> Result<SharedField> {
    context.shared(&format!("{page:?} {amount:?}"), |context| {
        let caches = Sizes::shared(context);
        let largest = sizes(caches.last, 1).last().copied().unwrap_or(SMALLEST >> 10) << 10;
        let (region, no_more) = Region::at_most(amount.bytes(largest, caches), page, &context.quota)?;
        Ok(Arc::new(Mutex::new(Field { region, no_more, written: None })))
    })
}

/// Keeps the cycle of a size written while its batches follow it.
struct Walk {
    field: SharedField,
    bytes: usize,
}

impl BatchHooks for Walk {
    fn unsettled(&mut self, context: &mut LoopContext) -> Result<()> {
        let mut field = locked(&self.field);
        field.write(self.bytes);
        if context.result == 0 {
            context.result = field.region.address();
        }
        Ok(())
    }
}

impl Field {
    /// Writes the cycle through the first `bytes`, unless it is there already.
    fn write(&mut self, bytes: usize) {
        if self.written.replace(bytes) == Some(bytes) {
            return;
        }
        let start = self.region.address();
        let order = Order::new((bytes / LINE) as u64);
        for (line, words) in self.region.words_mut()[..bytes / 8].chunks_exact_mut(LINE / 8).enumerate() {
            words[0] = start + order.after(line as u64) * LINE as u64;
        }
    }
}

/// A cycle through the lines in an order that prefetchers cannot predict: a permutation below the next power of two, cut to size.
pub(super) struct Order {
    lines: u64,
    mask: u64,
    shift: u32,
}

impl Order {
    /// Odd, so that multiplication by it is invertible (2^64 divided by the golden ratio; Knuth, TAOCP 6.4).
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    const INVERSE: u64 = inverse(Self::FACTOR);

    pub(super) fn new(lines: u64) -> Self {
        let all = lines.max(2).next_power_of_two();
        // Half of the bits or more, so that the xor-shift is its own inverse.
        Self { lines: lines.max(1), mask: all - 1, shift: all.trailing_zeros().div_ceil(2) }
    }

    fn mixed(&self, index: u64) -> u64 {
        let x = index.wrapping_mul(Self::FACTOR) & self.mask;
        (x ^ x >> self.shift).wrapping_mul(Self::FACTOR) & self.mask
    }

    fn unmixed(&self, line: u64) -> u64 {
        let x = line.wrapping_mul(Self::INVERSE) & self.mask;
        (x ^ x >> self.shift).wrapping_mul(Self::INVERSE) & self.mask
    }

    pub(super) fn after(&self, line: u64) -> u64 {
        let mut index = self.unmixed(line);
        loop {
            index = (index + 1) & self.mask;
            let next = self.mixed(index);
            if next < self.lines {
                return next;
            }
        }
    }
}

/// Returns the inverse of an odd number modulo 2^64: each Newton step doubles the number of correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_cycle_visits_every_line_once() {
        for lines in [1, 2, 3, 63, 64, 65, 100, 768, 1000, 4096, 12_289] {
            let order = Order::new(lines);
            let mut seen = vec![false; lines as usize];
            let mut line = 0;
            for _ in 0..lines {
                assert!(!seen[line as usize], "{lines}: {line} twice");
                seen[line as usize] = true;
                line = order.after(line);
            }
            assert_eq!(line, 0, "{lines}");
        }
    }

    #[test]
    fn the_cycle_has_no_frequent_stride() {
        let order = Order::new(4096);
        let mut strides: BTreeMap<u64, usize> = BTreeMap::new();
        for line in 0..4096 {
            *strides.entry(order.after(line).wrapping_sub(line)).or_default() += 1;
        }
        let commonest = strides.values().max().copied().unwrap_or(0);
        assert!(commonest < 4096 / 8, "one stride {commonest} times of 4096");
    }

    #[test]
    fn sizes_go_from_a_page_to_four_times_the_last_level() {
        assert_eq!(sizes(12 << 10, 1), [4, 8, 16, 32, 48]);
        assert_eq!(sizes(8 << 10, 1), [4, 8, 16, 32]);
        let fine = sizes(48 << 20, 8);
        assert_eq!((fine[0], fine[fine.len() - 1]), (4, 192 << 10));
        assert!(fine.windows(2).all(|two| two[0] < two[1] && two[1] * 2 <= two[0] * 3), "{fine:?}");
        let usual = sizes(48 << 20, 1);
        assert!(usual.iter().all(|size| fine.contains(size)));
    }
}
