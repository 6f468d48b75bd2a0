//! Events that happened while batches were timed: context switches, page faults, cycles.

use serde::{Deserialize, Serialize};

use crate::bounded;

/// Number of times a thread left the processor, because it waited or was preempted.
pub const CONTEXT_SWITCHES: &str = "context switches";
/// Number of times the timed thread ended on a processor other than it began on.
pub const MIGRATIONS: &str = "CPU migrations";
/// Page faults that needed no input or output.
pub const MINOR_FAULTS: &str = "minor faults";
/// Page faults that needed input or output.
pub const MAJOR_FAULTS: &str = "major faults";
/// Cycles of the processor's own clock in ring 3.
pub const USER_CYCLES: &str = "user cycles";
/// Cycles of the processor's own clock in ring 0.
pub const KERNEL_CYCLES: &str = "kernel cycles";
/// Instructions that retired in ring 3.
pub const USER_INSTRUCTIONS: &str = "user instructions";
/// Instructions that retired in ring 0.
pub const KERNEL_INSTRUCTIONS: &str = "kernel instructions";
/// Mispredicted branches that retired, in both rings.
pub const BRANCH_MISSES: &str = "branch misses";
/// Accesses that missed the last cache, in both rings.
pub const CACHE_MISSES: &str = "cache misses";

/// Most kinds of events of a source, and most sources of a measurement.
pub(crate) const MOST: usize = 32;

/// A count over the kept batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counter {
    /// The name of the events, in the plural: `context switches`.
    pub what: String,
    /// Their number in all kept batches together.
    pub number: u64,
}

/// The counts of one source in the kept batches of a case. It is read before the first clock reading and after the second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventCounts {
    /// The interface and its scope: `getrusage(2), the timed thread`.
    pub source: String,
    /// Operations in the counted batches.
    pub operations: u64,
    /// Kept batches in which other users held the PMU's counters for a while (multiplexing). Absent if 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// The events of all of these batches together. getrusage(2) gives `context switches`, `CPU migrations`, `minor faults` and
    /// `major faults`; a PMU gives `user cycles`, `user instructions`, `kernel cycles`, `kernel instructions`, `branch misses`
    /// and `cache misses` ([counters](counters.md)). The fact `run.counters` says which hardware events were counted, or why none
    /// were.
    #[serde(deserialize_with = "bounded::entries")]
    pub counts: Vec<Counter>,
}

impl EventCounts {
    /// Events of this kind per operation. `None` if it does not count them.
    pub fn per_operation(&self, what: &str) -> Option<f64> {
        let counter = self.counts.iter().find(|counter| counter.what == what)?;
        (self.operations > 0).then(|| counter.number as f64 / self.operations as f64)
    }
}

/// Events of this kind per operation, by the first source that counts them.
pub fn per_operation(events: &[EventCounts], what: &str) -> Option<f64> {
    events.iter().find_map(|counts| counts.per_operation(what))
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_that_counts_a_kind_is_taken() {
        let of = |source: &str, operations, what: &str, number| EventCounts {
            source: source.to_owned(),
            operations,
            uncounted: 0,
            counts: vec![Counter { what: what.to_owned(), number }],
        };
        let events = [
            of("none", 0, MINOR_FAULTS, 7),
            of("one", 4, MINOR_FAULTS, 2),
            of("two", 2, MINOR_FAULTS, 2),
            of("three", 8, USER_CYCLES, 80),
        ];
        assert_eq!(per_operation(&events, MINOR_FAULTS), Some(0.5));
        assert_eq!(per_operation(&events, USER_CYCLES), Some(10.0));
        assert_eq!(per_operation(&events, KERNEL_CYCLES), None);
    }
}
