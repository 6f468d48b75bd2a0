//! Runners: the interface of everything that runs batches, with its orders, results and refusals.
//!
//! An operation that blocks is judged by processor time. A thread that waits for its child is switched out
//! in every operation; parent and children are pinned to one processor, and time that none of them used
//! belongs to other work.

use serde::{Deserialize, Serialize};

use crate::loops::events::tally::{Tally, scaled};
use crate::machine::clock::{Clock, Span};
use crate::{loops::heartbeat::Heartbeat, loops::timed::LoopContext, refusal::Result};

/// An order: so many iterations of the loop, and as many of the empty loop before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Iterations of both loops, at least 1.
    pub iterations: u64,
    /// Extra iterations of the timed loop alone: 0 except in tests that slow an instance on purpose.
    pub extra: u64,
}

impl Order {
    /// So many iterations of both loops.
    pub fn new(iterations: u64) -> Self {
        Self { iterations, extra: 0 }
    }

    /// Iterations of the timed loop.
    pub fn all(self) -> u64 {
        self.iterations + self.extra
    }
}

/// One batch: the loop's ticks and those of the empty loop next to it.
///
/// The empty loop runs twice, and the shorter time counts: an interrupt in it would otherwise make the latency too
/// low.
///
/// For a unit other than time, `work` is the amount in that unit, for all operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Ticks of the timed loop.
    pub work: u64,
    /// Ticks of the empty loop.
    pub empty: u64,
    /// The thread was neither switched out nor migrated. For blocking calls: no other process used the processor.
    pub undisturbed: bool,
    /// Events that were counted, where the benchmark counts any.
    pub counted: Option<u64>,
    /// Other counts, in the order of the benchmark's counters.
    pub counters: Counters,
    /// Context switches, faults and hardware events; nothing where the runner does not count them.
    pub tally: Tally,
}

impl Batch {
    /// A batch in which nothing is counted.
    pub fn new(work: u64, empty: u64, undisturbed: bool) -> Self {
        let (counters, tally) = (Counters::default(), Tally::default());
        Self { work, empty, undisturbed, counted: None, counters, tally }
    }

    /// A batch of the timed loop between two empty ones. One that left its processor is disturbed in any case.
    pub fn between([emptied, worked, emptied_again]: [Span; 3], undisturbed: bool) -> Self {
        let stayed = [emptied, worked, emptied_again].iter().all(|span| span.same_processor);
        Self::new(worked.ticks, emptied.ticks.min(emptied_again.ticks), undisturbed && stayed)
    }

    /// The part of a batch of so many operations that is of those that its case states: its time beyond the empty loop's, and its tally.
    #[must_use]
    pub fn scaled(self, operations: u64, stated: u64) -> Self {
        let beyond = self.work.saturating_sub(self.empty);
        let work = self.work.min(self.empty).saturating_add(scaled(beyond, operations, stated));
        Self { work, tally: self.tally.scaled(operations, stated), ..self }
    }
}

/// Other counts of a benchmark; unused ones are 0.
pub type Counters = [u64; 4];

/// Repeats a batch a few times until one is undisturbed. Returns the last one otherwise.
pub fn until_undisturbed(heartbeat: &Heartbeat, mut batch: impl FnMut() -> Result<Batch>) -> Result<Batch> {
    const TRIES: usize = 3;
    let mut latest = batch()?;
    for _ in 1..TRIES {
        if latest.undisturbed {
            break;
        }
        heartbeat.beat();
        latest = batch()?;
    }
    Ok(latest)
}

/// Something that runs batches.
pub trait Runner {
    /// Runs one batch.
    ///
    /// # Errors
    /// A wrong result of the operation; or that this clock cannot time it.
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch>;
}

/// Untimed hooks around each batch of a loop: they install and remove a handler, give pages back to the kernel, count
/// events.
pub trait BatchHooks: Send {
    /// Before a loop that is [`settled`](crate::loops::instance::Loop::settled) runs until it repeats itself: writes what it works on, where
    /// other instances have written over it.
    fn unsettled(&mut self, _context: &mut LoopContext) -> Result<()> {
        Ok(())
    }

    /// Before so many iterations of the loop. It may change the loop's context.
    fn before(&mut self, _context: &mut LoopContext, _iterations: u64) -> Result<()> {
        Ok(())
    }

    /// After the loop. Returns the number of events, where the benchmark counts any.
    fn after(&mut self, _context: &LoopContext) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Whether the loop makes blocking calls, so that switches are part of the operation.
    fn blocks(&self) -> bool {
        false
    }
}
