//! Page walks: dependent loads of one line in each of many pages, in small pages and in huge ones.
//!
//! Both page sizes read the same lines at the same distances, so the caches respond equally and only the walk differs. The
//! stride sets how close page-table entries are: those of eight adjacent pages share a line; with 32 KiB none do.

use std::sync::{Arc, Mutex};

use super::latency::{self, CHASE, LOADS};
use super::region::{Page, Region};
use super::topology::Sizes;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "memory/tlb",
    operation: "One dependent load of a line in another one of this many pages, one page per stride, in random order.",
    avoid: "Use huge pages (madvise MADV_HUGEPAGE), and keep together what is read together.",
    source: "Intel SDM vol. 3, Paging; Documentation/admin-guide/mm/transhuge.rst",
    crosses: &[Tlb, MemoryAccess],
    timed: |_| Timed::Loop { code: TimedLoop::Long(CHASE), instruction: "mov/ldr", times: LOADS },
    cases: |_| cases(&[32, 1024, 4096], &[4, 32]),
    in_everything: |params, _| number(params, "pages") == 4096 && number(params, "stride_kib") == 4,
    thorough_cases: |_| {
        let (usual, all) =
            (cases(&[32, 1024, 4096], &[4, 32]), cases(&[32, 128, 512, 1024, 2048, 4096], &[4, 8, 16, 32]));
        all.into_iter().filter(|case| !usual.contains(case)).collect()
    },
    baseline: Baseline::Case(|params| {
        let mut base = params.clone();
        base.insert("page".to_owned(), Page::Huge.word().into());
        Some(base)
    }),
    kind: Kind::Instance(instance),
    uncounted: Some(TIME_OF_MEMORY),
    ..PLAIN
};

/// The largest number of pages times the largest stride.
const SPAN: u64 = 4096 * (32 << 10);
const LINE: u64 = 64;

fn cases(pages: &[u64], strides: &[u64]) -> Vec<Params> {
    let mut cases = Vec::new();
    for page in [Page::Small, Page::Huge] {
        for stride in strides {
            for number in pages {
                cases.push(params(&[
                    ("pages", (*number).into()),
                    ("stride_kib", (*stride).into()),
                    ("page", page.word().into()),
                ]));
            }
        }
    }
    cases
}

fn instance(timed: Timed, params: &Params, context: &mut Context) -> Result<Instance> {
    let (pages, stride) = (number(params, "pages").max(1), number(params, "stride_kib") << 10);
    let page = Page::try_from(params)?;
    if page == Page::Small && stride < page_size() as u64 {
        return Err(skip!("a page has {} KiB here, more than the stride", page_size() >> 10));
    }
    let make = |context: &mut Context| {
        let (region, no_more) = Region::at_most(SPAN, page, &context.quota)?;
        match no_more {
            Some(why) => Err(why),
            None => Ok(Arc::new(Mutex::new(Memory { region, written: None }))),
        }
    };
    let memory: Arc<Mutex<Memory>> = context.shared_while(&format!("pages {page:?}"), |_| true, make)?;
    let (first, notes) = {
        let memory = locked(&memory);
        (memory.region.address(), memory.region.notes().to_vec())
    };
    let lines = Lines { first, pages, stride };
    if lines.end() > first + SPAN {
        return Err(fail!("these pages at this stride are more than {} MiB", SPAN >> 20));
    }
    let inside = move |result: u64| {
        if lines.contains(result) {
            Ok(())
        } else {
            Err(format!("the last load returned {result:#x}, which is not a line of the pages"))
        }
    };
    let settling = latency::settling(pages, Sizes::shared(context), context);
    // SAFETY: before each batch `Chain` writes the cycle within the region that it owns, and the result is an address in it.
    let timed = unsafe { Loop::new(timed, [0; 7], None, inside) }?;
    let instance = timed.settled(settling).with_hooks(Chain { memory, lines }).here().with_ops(LOADS as u64);
    Ok(instance.on_fixture(format!("pages {}", page.word())).with_notes(notes))
}

struct Memory {
    region: Region,
    /// The lines whose cycle is written there.
    written: Option<Lines>,
}

impl Memory {
    fn write(&mut self, lines: Lines) {
        if self.written == Some(lines) {
            return;
        }
        let (words, order) = (self.region.words_mut(), latency::Order::new(lines.pages));
        for number in 0..lines.pages {
            let word = ((lines.address(number) - lines.first) / 8) as usize;
            if let Some(word) = words.get_mut(word) {
                *word = lines.address(order.after(number));
            }
        }
        self.written = Some(lines);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lines {
    first: u64,
    pages: u64,
    stride: u64,
}

impl Lines {
    /// Returns a line anywhere in its stride, so that the lines use all sets of a cache evenly.
    fn address(&self, number: u64) -> u64 {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.first + number * self.stride + mixed % (self.stride / LINE).max(1) * LINE
    }

    fn contains(&self, address: u64) -> bool {
        let number = address.wrapping_sub(self.first).checked_div(self.stride);
        number.is_some_and(|number| number < self.pages && self.address(number) == address)
    }

    fn end(&self) -> u64 {
        self.first.saturating_add(self.pages.saturating_mul(self.stride))
    }
}

/// Keeps the cycle of its lines written while its batches follow it.
struct Chain {
    memory: Arc<Mutex<Memory>>,
    lines: Lines,
}

impl BatchHooks for Chain {
    fn unsettled(&mut self, context: &mut LoopContext) -> Result<()> {
        locked(&self.memory).write(self.lines);
        context.result = self.lines.address(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pinned, ready};

    #[test]
    fn each_stride_has_one_line() {
        for stride in [4 << 10, 32 << 10] {
            let lines = Lines { first: 1 << 21, pages: 4096, stride };
            assert!((0..lines.pages).all(|number| lines.contains(lines.address(number))));
            let sets: std::collections::BTreeSet<u64> =
                (0..lines.pages).map(|number| lines.address(number) / LINE % 64).collect();
            assert_eq!(sets.len(), 64, "the lines use all sets of the first level");
            assert!(!lines.contains(lines.end()) && !lines.contains(0));
        }
    }

    #[test]
    fn many_small_pages_take_longer_than_few() {
        let mut context = Context::here();
        pinned();
        let mut least = |pages| {
            let case = cases(&[pages], &[32]).remove(0);
            let made = instance((BENCHMARK.timed)(&case), &case, &mut context);
            let mut instance = ready(&case, made)?;
            (0..20).map(|_| instance.batch(Clock::Kernel, Order::new(512)).expect("a batch").work).min()
        };
        let (Some(few), Some(many)) = (least(32), least(4096)) else { return };
        assert!(many > few, "{few} ns of 32 pages, {many} ns of 4096");
    }
}
