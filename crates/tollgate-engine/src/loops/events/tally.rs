use serde::{Deserialize, Serialize};
use tollgate_model::EventCounts;
use tollgate_model::events::Counter;
use tollgate_model::events::{CONTEXT_SWITCHES, MAJOR_FAULTS, MIGRATIONS, MINOR_FAULTS};

use super::pmu::{Between, EVENTS, NAMES, Of, Pmu};

/// For each source the number of batches that it counted, and its counts.
pub(crate) const WORDS: usize = 12 + EVENTS;

/// The counts of a batch, or the sums of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally([u64; WORDS]);

/// The index of each word. The PMU's events come last.
mod word {
    /// Batches counted by thread, batches counted by process, and those that were counted whole, with their untimed parts.
    pub const OF_THREAD: usize = 0;
    pub const OF_PROCESS: usize = 1;
    pub const WHOLE: usize = 2;
    pub const SWITCHES: usize = 3;
    pub const MIGRATIONS: usize = 4;
    pub const MINOR: usize = 5;
    pub const MAJOR: usize = 6;
    /// Batches in which the PMU counted all of a processor, or the timed thread; and those that it did not count throughout.
    pub const PROCESSOR: usize = 7;
    pub const THREAD: usize = 8;
    pub const UNCOUNTED: usize = 9;
    /// Batches of the PMU with the kernel part, and those with misses.
    pub const KERNEL: usize = 10;
    pub const MISSES: usize = 11;
    pub const PMU: usize = 12;
}

impl Tally {
    pub(crate) fn of_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    pub(crate) fn words(&self) -> [u64; WORDS] {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0[word::OF_THREAD..=word::WHOLE] == [0; 3]
    }

    /// Returns the number of context switches.
    pub fn switches(&self) -> u64 {
        self.0[word::SWITCHES]
    }

    /// Replaces the number of context switches, if another interface has counted those of all threads that take part.
    pub fn with_switches(mut self, switches: u64) -> Self {
        self.0[word::SWITCHES] = switches;
        self
    }

    /// Adds the page faults of another process that took part.
    pub fn with_faults(mut self, minor: u64, major: u64) -> Self {
        self.0[word::MINOR] = self.0[word::MINOR].saturating_add(minor);
        self.0[word::MAJOR] = self.0[word::MAJOR].saturating_add(major);
        self
    }

    /// Returns the number of page faults of both kinds.
    pub fn faults(&self) -> u64 {
        self.0[word::MINOR].saturating_add(self.0[word::MAJOR])
    }

    /// Scales counts of `operations` operations to a batch that states `stated`. Migrations belong to batches and stay.
    #[must_use]
    pub fn scaled(mut self, operations: u64, stated: u64) -> Self {
        let events = [word::SWITCHES, word::MINOR, word::MAJOR];
        for at in events.into_iter().chain(word::PMU..WORDS) {
            self.0[at] = scaled(self.0[at], operations, stated);
        }
        self
    }

    /// Makes a tally from the usage of `operations` operations, scaled to a batch that states `stated`.
    pub(crate) fn of_operations(usage: [u64; 3], operations: u64, stated: u64) -> Self {
        let part = |number: u64| scaled(number, operations, stated);
        let mut tally = Self::default();
        tally.0[word::OF_PROCESS] = 1;
        tally.0[word::SWITCHES] = part(usage[0]);
        tally.0[word::MINOR] = part(usage[1]);
        tally.0[word::MAJOR] = part(usage[2]);
        tally
    }

    /// Subtracts the counts of another part that ran at the same time.
    pub fn less(mut self, other: &Self) -> Self {
        for at in (word::SWITCHES..=word::MAJOR).chain(word::PMU..WORDS) {
            self.0[at] = self.0[at].saturating_sub(other.0[at]);
        }
        self
    }

    /// Combines two parts of one batch.
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

    pub(crate) fn counts(&self, operations: u64) -> Vec<EventCounts> {
        [self.by_kernel(operations), self.by_pmu(operations)].into_iter().flatten().collect()
    }

    fn by_kernel(&self, operations: u64) -> Option<EventCounts> {
        let of = |at: usize| self.0[at];
        let batches =
            of(word::OF_THREAD).saturating_add(of(word::OF_PROCESS)).saturating_add(of(word::WHOLE));
        let scope = if of(word::WHOLE) > 0 {
            "the process and its children, including the untimed parts of each batch"
        } else if of(word::OF_PROCESS) > 0 {
            "the processes involved"
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
        // If the group had to be smaller in one process, all leave those events out.
        let (kernel, misses) = (of(word::KERNEL) == batches, of(word::MISSES) == batches);
        let counts = NAMES.into_iter().enumerate().filter(|(slot, _)| match slot {
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

    /// The kernel's counts of one batch: context switches, migrations, and page faults of both kinds.
    pub(super) fn of_kernel(of: Of, [switches, migrations, minor, major]: [u64; 4]) -> Self {
        let mut tally = Self::default();
        tally.0[if of == Of::Thread { word::OF_THREAD } else { word::OF_PROCESS }] = 1;
        tally.0[word::SWITCHES] = switches;
        tally.0[word::MIGRATIONS] = migrations;
        tally.0[word::MINOR] = minor;
        tally.0[word::MAJOR] = major;
        tally
    }

    /// Marks counts of a whole call, with its untimed parts.
    pub(super) fn of_whole(mut self) -> Self {
        self.0[word::OF_PROCESS] = 0;
        self.0[word::WHOLE] = 1;
        self
    }

    pub(super) fn add_pmu(&mut self, pmu: &Pmu, counted: &Between) {
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

/// Scales a count of `operations` operations to `stated`, rounded to the nearest.
pub(crate) fn scaled(number: u64, operations: u64, stated: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(stated) + u128::from(operations) / 2;
    u64::try_from(scaled / u128::from(operations.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tollgate_model::events::per_operation;

    use super::*;

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
}
