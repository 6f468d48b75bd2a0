//! Counts events of a batch outside of the timed part.
//!
//! The kernel always counts the context switches and page faults of a thread, and getrusage(2) reads them. A software event of
//! perf_event_open(2) would count the same, but slow each page fault and context switch while it is open (`perf_swevent_enabled`,
//! `perf_sched_events` in the kernel's kernel/events/core.c), and these are measured here.
//!
//! A group of hardware events counts cycles, instructions and misses if the processor exposes a PMU. A group for a whole processor
//! does not slow a context switch; the group of a thread is swapped at each. So if an operation switches between threads, only the
//! former is used, which also counts the other thread. A batch does not count if the kernel took the counters away (`time_running` <
//! `time_enabled`).

mod pmu;
pub(crate) mod tally;

use tollgate_model::Fact;
use tollgate_os::rusage::Usage;

use crate::loops::runner::Batch;
use crate::machine::cpu;
use crate::refusal::Result;
use pmu::{Between, Pmu};

pub use pmu::Of;
pub(crate) use pmu::{NoPmu, open};
pub use tally::Tally;
pub(crate) use tally::WORDS;

/// Counts the events of one batch.
pub struct Counting<'a> {
    of: Of,
    usage: Usage,
    processor: Option<usize>,
    pmu: Option<&'a Pmu>,
    last: Option<pmu::Snapshot>,
    /// The counts of the empty part: the overhead of a reading and of the loop.
    overhead: Option<Between>,
    worked: Option<Between>,
}

impl Counting<'static> {
    /// Begins counting, with the process's own group of hardware events if it has one for this.
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

    /// Runs the empty loop, or a clock that times nothing. Its hardware events are subtracted.
    pub fn empty<T>(&mut self, part: impl FnOnce() -> T) -> T {
        let (value, counted) = self.between(part);
        self.overhead = counted;
        value
    }

    /// Runs the timed part with its two clock reads.
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

    /// Returns the counts until now.
    pub fn end(self) -> Tally {
        self.end_with_usage().0
    }

    /// Returns the counts, and getrusage(2)'s values at the beginning and now.
    pub fn end_with_usage(self) -> (Tally, [Usage; 2]) {
        let now = usage(self.of);
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let has_moved = self.of == Of::Thread && cpu::current() != self.processor;
        let counts = [
            since(now.switches(), self.usage.switches()),
            u64::from(has_moved),
            since(now.minflt, self.usage.minflt),
            since(now.majflt, self.usage.majflt),
        ];
        let mut tally = Tally::of_kernel(self.of, counts);
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

/// Runs batches. Those that did not count their events get those of the whole call, with its untimed parts.
pub(crate) fn around(run: impl FnOnce() -> Result<Vec<Batch>>) -> Result<Vec<Batch>> {
    let counting = Counting::with(Of::Process, None);
    let mut batches = run()?;
    let tally = counting.end().of_whole();
    for batch in batches.iter_mut().filter(|batch| batch.tally.is_empty()) {
        batch.tally = tally;
    }
    Ok(batches)
}

pub(crate) fn fact(found: &std::result::Result<String, NoPmu>) -> Fact {
    match found {
        Ok(what) => Fact::known(what.clone(), "perf_event_open(2)"),
        Err(none) if none.is_refused => Fact::refused(none.why.clone()),
        Err(none) => Fact::absent(none.why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_model::events::{
        KERNEL_CYCLES, MINOR_FAULTS, USER_CYCLES, USER_INSTRUCTIONS, per_operation,
    };
    use tollgate_os::perf::Scope;

    use super::pmu::tests::{fake, reading};
    use super::*;

    /// A batch between readings with these numbers of cycles and instructions of ring 3.
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
            // Not counted in the timed part, in the empty one, or at all.
            [[10, 10, 100, 50], [20, 20, 130, 60], [40, 35, 900, 400]],
            [[10, 10, 100, 50], [20, 15, 130, 60], [40, 35, 900, 400]],
            [[10, 0, 0, 0], [20, 0, 0, 0], [40, 0, 0, 0]],
        ] {
            let part = counted(&readings);
            let sum = Tally::of_words(std::array::from_fn(|at| whole.words()[at] + part.words()[at]));
            let by_pmu = &sum.counts(10)[1];
            assert_eq!((by_pmu.operations, by_pmu.uncounted), (10, 1));
            assert_eq!(by_pmu.per_operation(USER_CYCLES), Some(97.0));
            // The kernel's own counts cover both batches.
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
        let memory =
            crate::machine::mapping::Mapping::anonymous(PAGES * 4096, libc::MAP_PRIVATE).expect("memory");
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
    fn what_counts_itself_is_not_counted_again() {
        let own = Counting::with(Of::Thread, None).end();
        let batches =
            around(|| Ok(vec![Batch::new(1, 0, true), Batch { tally: own, ..Batch::new(1, 0, true) }]));
        let batches = batches.expect("two batches");
        assert!(batches[0].tally.counts(1)[0].source.contains("untimed parts"));
        assert_eq!(batches[1].tally, own);
    }
}
