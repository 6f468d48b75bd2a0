//! First touches of pages, one after the other: the hooks of such a batch, and the count of its faults.
//!
//! Word 0 of each loop is the page, and word 1 the distance to the next one, which is the same on all machines of x86-64.

use tollgate_engine::cpu::minor_faults;

use super::memory::{FILLING, Region};
use crate::prelude::*;

timed_loop! {
    /// Stores to a small page and advances to the next.
    touch_small: called
        "xor eax, eax", "add rax, [r13]", "mov byte ptr [rax], 1", "add qword ptr [r13], 4096";
    aarch64 "ldr x0, [x20]", "mov w9, 1", "strb w9, [x0]", "ldr x9, [x20, #8]", "add x9, x0, x9", "str x9, [x20]"
}

timed_loop! {
    /// Stores without a call in the iteration. The loop's function was called, and returns at the end.
    touch_in_loop: "xor eax, eax", "add rax, [r13]", "mov byte ptr [rax], 1", "add qword ptr [r13], 4096";
    aarch64 "ldr x0, [x20]", "mov w9, 1", "strb w9, [x0]", "ldr x9, [x20, #8]", "add x9, x0, x9", "str x9, [x20]"
}

timed_loop! {
    /// Stores as in a function that has called others and contains the loop: a return takes this function's call from the
    /// processor's stack of calls, so that the return at the end is mispredicted.
    touch_after_return: first "lea rdx, [rip + 5f]", "push rdx", "jmp 6f", "5:";
        "xor eax, eax", "add rax, [r13]", "mov byte ptr [rax], 1", "add qword ptr [r13], 4096";
        after "6:", "ret";
    aarch64
        first "adr x30, 5f", "b 6f", "5:";
        "ldr x0, [x20]", "mov w9, 1", "strb w9, [x0]", "ldr x9, [x20, #8]", "add x9, x0, x9", "str x9, [x20]";
        after "6:", "ret"
}

timed_loop! {
    touch_huge: called
        "xor eax, eax", "add rax, [r13]", "mov byte ptr [rax], 1", "add qword ptr [r13], 0x200000";
    aarch64 "ldr x0, [x20]", "mov w9, 1", "strb w9, [x0]", "ldr x9, [x20, #8]", "add x9, x0, x9", "str x9, [x20]"
}

pub(super) const SMALL: Timed = Timed::once("mov/strb", TimedLoop::Long(touch_small));
pub(super) const SMALL_IN_LOOP: Timed = Timed::once("mov/strb", TimedLoop::Long(touch_in_loop));
pub(super) const SMALL_AFTER_RETURN: Timed = Timed::once("mov/strb", TimedLoop::Long(touch_after_return));
pub(super) const LARGE: Timed = Timed::once("mov/strb", TimedLoop::Long(touch_huge));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    Faults,
    /// Small pages that are resident afterwards.
    Pages,
}

/// The state of the pages before the touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Missing,
    /// Mapped and read: a private mapping shares them with its file.
    Read,
    /// Unmapped again, with the kernel's data of the pages in the caches: a fault on a file page mostly looks that up.
    Forgotten,
}

pub(super) struct Touched {
    pub region: Region,
    /// Bytes from one touch to the next.
    pub stride: usize,
    pub before: Before,
    pub counting: Counting,
    /// Small pages that each touch makes resident; 0 if mincore(2) is not reliable.
    pub made: usize,
    pub touches: usize,
    /// Minor faults before the batch.
    pub faults: u64,
}

impl Touched {
    /// Makes pages of `region`, not mapped before, with one touch for each `stride`; `made` as in [`Touched::made`].
    pub fn new(region: Region, stride: usize, made: usize, counting: Counting) -> Self {
        Self { region, stride, before: Before::Missing, counting, made, touches: 0, faults: 0 }
    }

    /// Makes the instance, with `ops` operations for each touch, after a trial of all its pages.
    pub fn instance(
        mut self,
        timed: Timed,
        ops: u64,
        check: impl Fn(u64) -> Result<(), String> + Send + 'static,
    ) -> Result<Instance> {
        let most = (self.region.length() / self.stride) as u64;
        if self.made > 0 {
            self.region.discard()?;
            mincore_tells(&self.region)?;
            self.region.write(0, 1);
            let made = self.region.resident(usize::MAX)?;
            if made != self.made {
                let why =
                    if self.stride == huge_page() { "no huge pages here" } else { "no small pages here" };
                return Err(skip!(
                    "{why}: one touch makes {made} times {} KiB resident instead of {}",
                    page_size() >> 10,
                    self.made
                ));
            }
        }
        // SAFETY: before each batch word 0 is set to the region's start and word 1 to the stride, and the batch has no more
        // touches than the region has pages; the loop's hooks own the region.
        let timed = unsafe { Loop::new(timed, [0; 7], None, check) }?.with_hooks(self);
        Exact::tried(timed, most, ops)
    }
}

impl BatchHooks for Touched {
    fn before(&mut self, context: &mut LoopContext, iterations: u64) -> Result<()> {
        let most = self.region.length() / self.stride;
        self.touches = usize::try_from(iterations).unwrap_or(usize::MAX);
        if self.touches > most {
            return Err(fail!("{iterations} touches were requested, there are {most} pages"));
        }
        self.region.discard()?;
        if self.before != Before::Missing {
            for touch in 0..self.touches {
                self.region.read(touch * self.stride);
            }
        }
        if self.before == Before::Forgotten {
            self.region.discard()?;
        }
        context.words[0] = self.region.start();
        context.words[1] = self.stride as u64;
        self.faults = minor_faults();
        Ok(())
    }

    fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
        let faults = minor_faults().saturating_sub(self.faults);
        let made = self.touches * self.made;
        let resident = if self.made > 0 { self.region.resident(usize::MAX)? } else { made };
        let last = self.touches.saturating_sub(1) * self.stride;
        if self.before == Before::Read && (self.region.read(last), self.region.read(last + 1)) != (1, FILLING)
        {
            return Err(fail!("a page after a store is not a copy of the file's"));
        }
        // Other instances must not have this memory.
        self.region.discard()?;
        Ok(Some(match self.counting {
            Counting::Pages => resident as u64,
            // If no huge page was free, the fault mapped a small one, which invalidates the batch.
            Counting::Faults if resident < made => (resident / self.made) as u64,
            Counting::Faults => faults,
        }))
    }
}

/// A loop whose events are the thread's page faults. One fault too many is unrelated, such as on a page of the program itself;
/// too few show a lack of huge pages. Such a batch is disturbed. Many such batches in a row are a failure.
pub(super) struct Exact {
    timed: Loop,
    ops: u64,
    strays: u32,
}

impl Exact {
    /// Makes the instance of a loop of `most` iterations of `ops` operations, after a batch that warms up the engine's pages.
    pub fn tried(timed: Loop, most: u64, ops: u64) -> Result<Instance> {
        const TRIALS: usize = 3;
        let mut exact = Self { timed, ops, strays: 0 };
        let mut counted = 0;
        for _ in 0..TRIALS {
            let batch = exact.timed.batch(Clock::Kernel, Order::new(most))?;
            counted = batch.counted.unwrap_or(0);
            if counted == most * ops {
                return Ok(Instance::new(exact).with_ops(ops).with_most(most));
            }
        }
        Err(skip!("the kernel's count differs here: {counted} instead of {}", most * ops))
    }
}

impl Runner for Exact {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        const MOST_STRAYS: u32 = 16;
        let batch = self.timed.batch(clock, order)?;
        let wanted = order.all() * self.ops;
        if batch.counted.is_some_and(|counted| counted != wanted) && self.strays < MOST_STRAYS {
            self.strays += 1;
            return Ok(Batch { undisturbed: false, ..batch });
        }
        self.strays = 0;
        Ok(batch)
    }
}

/// Checks that mincore(2) reports untouched pages of `region` as absent.
pub(super) fn mincore_tells(region: &Region) -> Result<()> {
    match region.resident(usize::MAX)? {
        0 => Ok(()),
        _ => Err(skip!("mincore(2) is not reliable here: it reports untouched pages as resident")),
    }
}

/// Checks the last touched address by its remainder in a stride.
pub(super) fn aligned(stride: usize) -> impl Fn(u64) -> Result<(), String> + Send {
    move |last| match last % stride as u64 {
        0 if last > 0 => Ok(()),
        _ => Err(format!("the last touch was at address {last:#x}")),
    }
}

pub(super) fn small(pages: usize) -> Result<Region> {
    let region = Region::anonymous(pages * page_size(), libc::PROT_READ | libc::PROT_WRITE)?;
    region.small_pages();
    Ok(region)
}

pub(super) fn huge(pages: usize) -> Result<Region> {
    let region = Region::anonymous(pages * huge_page(), libc::PROT_READ | libc::PROT_WRITE)?;
    region.advise(libc::MADV_HUGEPAGE).or_refused("madvise(MADV_HUGEPAGE) is refused")?;
    Ok(region)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_engine::timed::EMPTY;

    /// Counts this many more events than iterations.
    struct TooMany(Vec<u64>, u64);

    impl BatchHooks for TooMany {
        fn before(&mut self, _: &mut LoopContext, iterations: u64) -> Result<()> {
            self.1 = iterations;
            Ok(())
        }

        fn after(&mut self, _: &LoopContext) -> Result<Option<u64>> {
            Ok(Some(self.1 + self.0.pop().unwrap_or(0)))
        }
    }

    fn exact(surplus: impl IntoIterator<Item = u64>) -> Exact {
        // A batch calls it twice: for its warm-up, and for itself.
        let mut surplus: Vec<u64> = surplus.into_iter().flat_map(|more| [0, more]).collect();
        surplus.reverse();
        let timed = Loop::without_context(Timed::once("", EMPTY), |_| Ok(())).expect("a loop");
        Exact { timed: timed.with_hooks(TooMany(surplus, 0)), ops: 1, strays: 0 }
    }

    #[test]
    fn a_stray_fault_is_a_disturbance_and_many_are_a_failure() {
        let run = |exact: &mut Exact| {
            let batch = exact.batch(Clock::Kernel, Order::new(4)).expect("a batch");
            (batch.counted, batch.undisturbed)
        };
        let mut once = exact([1, 0]);
        assert_eq!(run(&mut once), (Some(5), false));
        assert_eq!(run(&mut once).0, Some(4));
        assert_eq!(once.strays, 0);
        let mut always = exact([2; 40]);
        // Other faults may also disturb a batch; a batch with a wrong count is never undisturbed.
        let kept = (0..40).filter(|_| {
            let before = always.strays;
            let (counted, _) = run(&mut always);
            assert_eq!(counted, Some(6));
            always.strays <= before
        });
        assert_eq!(kept.count(), 2, "every 17th is reported and refused");
    }

    #[test]
    fn a_trial_with_wrong_counts_refuses() {
        let always = exact([1; 9]);
        assert!(matches!(Exact::tried(always.timed, 4, 1), Err(Refusal::Skip(_))));
        let once = exact([1]);
        assert_eq!(Exact::tried(once.timed, 4, 1).map(|instance| instance.limits()).ok(), Some((1, 4)));
    }
}
