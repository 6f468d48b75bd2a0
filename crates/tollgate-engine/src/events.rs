//! Events of a batch: what is counted beside its time, outside of what is timed.
//!
//! The kernel counts the context switches and page faults of a thread in any case, and getrusage(2) reads them. A software event of
//! perf_event_open(2) would count the same, and make each page fault and each context switch slower while it is open
//! (`perf_swevent_enabled`, `perf_sched_events` in the kernel's kernel/events/core.c), which are measured here.
//!
//! Cycles, instructions and misses are counted by a group of hardware events, where the processor shows a PMU. A group that counts all of
//! a processor costs a context switch nothing; the group of a thread is exchanged at each. So where an operation switches between
//! threads, only the former is used: it also counts the other thread. A batch in which the kernel gave the counters away
//! for a while (`time_running` is less than `time_enabled`) is not counted.

mod pmu;

use serde::{Deserialize, Serialize};
use tollgate_model::events::{CONTEXT_SWITCHES, MAJOR_FAULTS, MIGRATIONS, MINOR_FAULTS};
use tollgate_model::measurement::Counter;
use tollgate_model::{EventCounts, Fact};
use tollgate_os::rusage::Usage;

use super::cpu;
use super::refusal::Result;
use super::runner::Batch;
use pmu::{Between, EVENTS, Pmu};

pub(crate) use pmu::{NoPmu, open};

/// Whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Those of the calling thread.
    Thread,
    /// Those of this process, with all its threads, and of the children that it waits for.
    Process,
}

/// Words of a tally: for each source the batches that it counted, and its counts.
pub(crate) const WORDS: usize = 12 + EVENTS;

/// The counts of a batch, or the sums of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally([u64; WORDS]);

/// The words of a tally, by their index. Those of the PMU's events come last.
mod word {
    /// Batches whose thread was counted, whose process was, and those that were counted whole, with their untimed parts.
    pub const OF_THREAD: usize = 0;
    pub const OF_PROCESS: usize = 1;
    pub const WHOLE: usize = 2;
    pub const SWITCHES: usize = 3;
    pub const MIGRATIONS: usize = 4;
    pub const MINOR: usize = 5;
    pub const MAJOR: usize = 6;
    /// Batches in which the PMU counted all of a processor, or the timed thread; and those in which it did not count all the time.
    pub const PROCESSOR: usize = 7;
    pub const THREAD: usize = 8;
    pub const UNCOUNTED: usize = 9;
    /// Of the batches that the PMU counted, those whose kernel part was counted too, and those whose misses were.
    pub const KERNEL: usize = 10;
    pub const MISSES: usize = 11;
    pub const PMU: usize = 12;
}

impl Tally {
    /// Of its sums in shared memory.
    pub(crate) fn of_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    pub(crate) fn words(&self) -> [u64; WORDS] {
        self.0
    }

    /// Whether anything counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0[word::OF_THREAD..=word::WHOLE] == [0; 3]
    }

    /// Context switches.
    pub fn switches(&self) -> u64 {
        self.0[word::SWITCHES]
    }

    /// The same with so many context switches: those of all threads that take part, where another interface has counted them.
    pub fn with_switches(mut self, switches: u64) -> Self {
        self.0[word::SWITCHES] = switches;
        self
    }

    /// The same and the page faults of another process that took part.
    pub fn with_faults(mut self, minor: u64, major: u64) -> Self {
        self.0[word::MINOR] = self.0[word::MINOR].saturating_add(minor);
        self.0[word::MAJOR] = self.0[word::MAJOR].saturating_add(major);
        self
    }

    /// Page faults of both kinds.
    pub fn faults(&self) -> u64 {
        self.0[word::MINOR].saturating_add(self.0[word::MAJOR])
    }

    /// Of counts of so many operations, the part of a batch that states fewer or more of them. Migrations are of batches.
    #[must_use]
    pub fn scaled(mut self, operations: u64, stated: u64) -> Self {
        let events = [word::SWITCHES, word::MINOR, word::MAJOR];
        for at in events.into_iter().chain(word::PMU..WORDS) {
            self.0[at] = scaled(self.0[at], operations, stated);
        }
        self
    }

    /// Of events that `operations` operations had, the part of one batch that states fewer or more of them.
    pub(crate) fn of_operations(usage: [u64; 3], operations: u64, stated: u64) -> Self {
        let part = |number: u64| scaled(number, operations, stated);
        let mut tally = Self::default();
        tally.0[word::OF_PROCESS] = 1;
        tally.0[word::SWITCHES] = part(usage[0]);
        tally.0[word::MINOR] = part(usage[1]);
        tally.0[word::MAJOR] = part(usage[2]);
        tally
    }

    /// These counts less those of another part, which was counted beside it.
    pub fn less(mut self, other: &Self) -> Self {
        for at in (word::SWITCHES..=word::MAJOR).chain(word::PMU..WORDS) {
            self.0[at] = self.0[at].saturating_sub(other.0[at]);
        }
        self
    }

    /// The two together, of one batch that consists of two parts.
    pub fn and(&self, other: &Self) -> Self {
        let mut sum = Self(std::array::from_fn(|at| self.0[at].saturating_add(other.0[at])));
        for at in [word::OF_THREAD, word::OF_PROCESS, word::WHOLE, word::PROCESSOR, word::THREAD] {
            sum.0[at] = sum.0[at].min(1);
        }
        for at in [word::KERNEL, word::MISSES] {
            sum.0[at] = self.0[at].min(other.0[at]);
        }
        if sum.0[word::UNCOUNTED] > 0 {
            sum.0[word::PROCESSOR] = 0;
            sum.0[word::THREAD] = 0;
            sum.0[word::UNCOUNTED] = 1;
            sum.0[word::PMU..].fill(0);
        }
        sum
    }

    /// For a document: of batches that have so many operations each.
    pub(crate) fn counts(&self, operations: u64) -> Vec<EventCounts> {
        [self.by_kernel(operations), self.by_pmu(operations)].into_iter().flatten().collect()
    }

    fn by_kernel(&self, operations: u64) -> Option<EventCounts> {
        let of = |at: usize| self.0[at];
        let batches =
            of(word::OF_THREAD).saturating_add(of(word::OF_PROCESS)).saturating_add(of(word::WHOLE));
        let scope = if of(word::WHOLE) > 0 {
            "the process and its children, with the untimed parts of each batch"
        } else if of(word::OF_PROCESS) > 0 {
            "the processes that take part"
        } else {
            "the timed thread"
        };
        let counts = [
            (CONTEXT_SWITCHES, word::SWITCHES),
            (MIGRATIONS, word::MIGRATIONS),
            (MINOR_FAULTS, word::MINOR),
            (MAJOR_FAULTS, word::MAJOR),
        ];
        (batches > 0).then(|| EventCounts {
            source: format!("getrusage(2) and getcpu(2), {scope}"),
            operations: batches.saturating_mul(operations),
            uncounted: 0,
            counts: counts.into_iter().map(|(what, at)| counter(what, of(at))).collect(),
        })
    }

    fn by_pmu(&self, operations: u64) -> Option<EventCounts> {
        let of = |at: usize| self.0[at];
        let batches = of(word::PROCESSOR).saturating_add(of(word::THREAD));
        let scope = if of(word::PROCESSOR) > 0 { "all of the processor" } else { "the timed thread" };
        // A process in which the group had to be smaller leaves those events out for all.
        let (kernel, misses) = (of(word::KERNEL) == batches, of(word::MISSES) == batches);
        let counts = pmu::NAMES.into_iter().enumerate().filter(|(slot, _)| match slot {
            0 | 1 => true,
            2 | 3 => kernel,
            _ => misses,
        });
        (batches > 0 || of(word::UNCOUNTED) > 0).then(|| EventCounts {
            source: format!("perf_event_open(2), {scope}"),
            operations: batches.saturating_mul(operations),
            uncounted: of(word::UNCOUNTED),
            counts: counts.map(|(slot, what)| counter(what, of(word::PMU + slot))).collect(),
        })
    }

    fn add_pmu(&mut self, pmu: &Pmu, counted: &Between) {
        if !counted.is_whole {
            self.0[word::UNCOUNTED] = 1;
            return;
        }
        self.0[if pmu.counts_processor() { word::PROCESSOR } else { word::THREAD }] = 1;
        self.0[word::KERNEL] = u64::from(pmu.counts_kernel());
        self.0[word::MISSES] = u64::from(pmu.counts_misses());
        self.0[word::PMU..].copy_from_slice(&counted.counts);
    }
}

fn counter(what: &str, number: u64) -> Counter {
    Counter { what: what.to_owned(), number }
}

/// Counts the events of one batch.
pub struct Counting<'a> {
    of: Of,
    usage: Usage,
    processor: Option<usize>,
    pmu: Option<&'a Pmu>,
    /// The reading that stands before what comes next.
    last: Option<pmu::Snapshot>,
    /// In the empty part: what a reading and the loop add.
    overhead: Option<Between>,
    worked: Option<Between>,
}

impl Counting<'static> {
    /// From now on, with the process's own group of hardware events where it has one that counts this.
    pub fn begin(of: Of) -> Self {
        Self::with(of, pmu::own(of))
    }
}

impl<'a> Counting<'a> {
    fn with(of: Of, pmu: Option<&'a Pmu>) -> Self {
        let usage = usage(of);
        let processor = cpu::current();
        Self { of, usage, processor, pmu, last: None, overhead: None, worked: None }
    }

    /// The empty loop, or a clock that times nothing: its hardware events are subtracted.
    pub fn empty<T>(&mut self, part: impl FnOnce() -> T) -> T {
        let (value, counted) = self.between(part);
        self.overhead = counted;
        value
    }

    /// The timed part, with its two readings of the clock.
    pub fn work<T>(&mut self, part: impl FnOnce() -> T) -> T {
        let (value, counted) = self.between(part);
        self.worked = counted;
        self.last = None;
        value
    }

    fn between<T>(&mut self, part: impl FnOnce() -> T) -> (T, Option<Between>) {
        let Some(pmu) = self.pmu else { return (part(), None) };
        let before = self.last.take().or_else(|| pmu.read());
        let value = part();
        let after = pmu.read();
        let counted = before.as_ref().zip(after.as_ref()).map(|(before, after)| after.since(before));
        self.last = after;
        (value, counted)
    }

    /// The counts until now.
    pub fn end(self) -> Tally {
        self.end_with_usage().0
    }

    /// The same, and what getrusage(2) said at the beginning and says now.
    pub fn end_with_usage(self) -> (Tally, [Usage; 2]) {
        let now = usage(self.of);
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let mut tally = Tally::default();
        let has_moved = self.of == Of::Thread && cpu::current() != self.processor;
        tally.0[if self.of == Of::Thread { word::OF_THREAD } else { word::OF_PROCESS }] = 1;
        tally.0[word::SWITCHES] = since(now.switches(), self.usage.switches());
        tally.0[word::MIGRATIONS] = u64::from(has_moved);
        tally.0[word::MINOR] = since(now.minflt, self.usage.minflt);
        tally.0[word::MAJOR] = since(now.majflt, self.usage.majflt);
        if let (Some(pmu), Some(worked)) = (self.pmu, self.worked) {
            tally.add_pmu(pmu, &worked.less(self.overhead.as_ref()));
        }
        (tally, [self.usage, now])
    }
}

fn usage(of: Of) -> Usage {
    match of {
        Of::Thread => Usage::of_thread(),
        Of::Process => {
            let (own, children) = (Usage::of_process(), Usage::of_children());
            Usage {
                minflt: own.minflt.saturating_add(children.minflt),
                majflt: own.majflt.saturating_add(children.majflt),
                nvcsw: own.nvcsw.saturating_add(children.nvcsw),
                nivcsw: own.nivcsw.saturating_add(children.nivcsw),
                ..own
            }
        }
    }
}

/// Of a number for so many operations, the part of those that are stated, rounded to the nearest.
pub(crate) fn scaled(number: u64, operations: u64, stated: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(stated) + u128::from(operations) / 2;
    u64::try_from(scaled / u128::from(operations.max(1))).unwrap_or(u64::MAX)
}

/// Runs batches, and counts the events of those that were not counted where they were made: of the whole call, with its untimed parts.
pub(crate) fn around(run: impl FnOnce() -> Result<Vec<Batch>>) -> Result<Vec<Batch>> {
    let counting = Counting::with(Of::Process, None);
    let mut batches = run()?;
    let mut tally = counting.end();
    tally.0[word::OF_PROCESS] = 0;
    tally.0[word::WHOLE] = 1;
    for batch in batches.iter_mut().filter(|batch| batch.tally.is_empty()) {
        batch.tally = tally;
    }
    Ok(batches)
}

/// The fact of what counts events beside the time.
pub(crate) fn fact(found: &std::result::Result<String, NoPmu>) -> Fact {
    match found {
        Ok(what) => Fact::known(what.clone(), "perf_event_open(2)"),
        Err(none) if none.is_refused => Fact::refused(none.why.clone()),
        Err(none) => Fact::absent(none.why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_model::events::{KERNEL_CYCLES, USER_CYCLES, USER_INSTRUCTIONS, per_operation};
    use tollgate_os::perf::Scope;

    use super::pmu::tests::{fake, reading};
    use super::*;

    /// A batch between readings of these numbers, of cycles and instructions of ring 3.
    fn counted(readings: &[[u64; 4]]) -> Tally {
        let readings =
            readings.iter().map(|[enabled, running, counts @ ..]| reading(*enabled, *running, counts));
        let pmu = fake(2, Scope::Thread, readings.collect());
        let mut counting = Counting::with(Of::Thread, Some(&pmu));
        counting.empty(|| ());
        counting.work(|| ());
        counting.end()
    }

    #[test]
    fn the_empty_part_is_subtracted() {
        let tally = counted(&[[10, 10, 100, 50], [20, 20, 130, 60], [40, 40, 1130, 460]]);
        let events = tally.counts(10);
        // 1000 - 30 cycles, 400 - 10 instructions.
        assert_eq!(per_operation(&events, USER_CYCLES), Some(97.0));
        assert_eq!(per_operation(&events, USER_INSTRUCTIONS), Some(39.0));
        assert_eq!(per_operation(&events, KERNEL_CYCLES), None);
        assert_eq!(events[1].source, "perf_event_open(2), the timed thread");
    }

    #[test]
    fn a_batch_in_which_the_group_did_not_count_all_the_time_is_said_and_not_counted() {
        let whole = counted(&[[10, 10, 100, 50], [20, 20, 130, 60], [40, 40, 1130, 460]]);
        for readings in [
            // In the timed part, in the empty one, and never.
            [[10, 10, 100, 50], [20, 20, 130, 60], [40, 35, 900, 400]],
            [[10, 10, 100, 50], [20, 15, 130, 60], [40, 35, 900, 400]],
            [[10, 0, 0, 0], [20, 0, 0, 0], [40, 0, 0, 0]],
        ] {
            let part = counted(&readings);
            let sum = Tally::of_words(std::array::from_fn(|at| whole.words()[at] + part.words()[at]));
            let by_pmu = &sum.counts(10)[1];
            assert_eq!((by_pmu.operations, by_pmu.uncounted), (10, 1));
            assert_eq!(by_pmu.per_operation(USER_CYCLES), Some(97.0));
            // The kernel's own counts are of both batches.
            assert_eq!(sum.counts(10)[0].operations, 20);
        }
    }

    #[test]
    fn a_reading_that_fails_is_no_count() {
        assert_eq!(counted(&[[10, 10, 100, 50], [20, 20, 130, 60]]).counts(1).len(), 1);
    }

    #[test]
    fn a_page_that_is_touched_is_one_fault_and_a_sleep_one_switch() {
        const PAGES: usize = 64;
        let memory = crate::mapping::Mapping::anonymous(PAGES * 4096, libc::MAP_PRIVATE).expect("memory");
        let counting = Counting::with(Of::Thread, None);
        for page in 0..PAGES {
            // SAFETY: the byte lies in the mapping, which nothing else uses.
            unsafe { memory.address().add(page * 4096).write_volatile(1) };
        }
        let events = counting.end().counts(PAGES as u64);
        let faults = per_operation(&events, MINOR_FAULTS).expect("faults");
        // Huge pages would need one for all.
        assert!(faults > 0.0 && faults < 1.5, "{faults}");
        let counting = Counting::with(Of::Process, None);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(counting.end().switches() >= 1);
    }

    #[test]
    fn the_counts_of_other_operations_are_scaled_to_those_that_are_stated() {
        let tally = Tally::of_operations([0, 3_000, 1], 3_000, 64);
        let events = tally.counts(64);
        assert_eq!(per_operation(&events, MINOR_FAULTS), Some(1.0));
        assert_eq!(per_operation(&events, MAJOR_FAULTS), Some(0.0));
        let most = Tally::of_operations([300, 200, 100], 1, 1).scaled(3, 2);
        assert_eq!((most.switches(), most.faults()), (200, 200));
        let batch = crate::Batch::new(1_100, 100, true).scaled(80, 64);
        assert_eq!((batch.work, batch.empty), (900, 100));
        assert_eq!(Tally::of_operations([u64::MAX; 3], 0, u64::MAX).switches(), u64::MAX);
    }

    #[test]
    fn what_counts_itself_is_not_counted_again() {
        let own = Counting::with(Of::Thread, None).end();
        let batches =
            around(|| Ok(vec![Batch::new(1, 0, true), Batch { tally: own, ..Batch::new(1, 0, true) }]));
        let batches = batches.expect("two batches");
        assert!(batches[0].tally.counts(1)[0].source.contains("untimed parts"));
        assert_eq!(batches[1].tally, own);
    }
}
