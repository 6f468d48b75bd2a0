//! Runners: the common interface of everything that runs batches, with its orders and results.
//!
//! An operation that blocks is judged by processor time. A thread that waits for its child is switched out in every operation.
//! Parent and children are pinned to one processor, so time that none of them used belongs to other work.

use serde::{Deserialize, Serialize};

use crate::loops::events::tally::{Tally, scaled};
use crate::machine::clock::{Clock, Span};
use crate::{loops::heartbeat::Heartbeat, loops::timed::LoopContext, refusal::Result};

/// An order: iterations of the loop, and as many of the empty loop before and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Iterations of both loops, at least 1.
    pub iterations: u64,
    /// Extra iterations of the timed loop alone: 0 except in tests that slow an instance on purpose.
    pub extra: u64,
}

impl Order {
    /// Orders this many iterations of both loops.
    pub fn new(iterations: u64) -> Self {
        Self { iterations, extra: 0 }
    }

    /// Returns the iterations of the timed loop.
    pub fn all(self) -> u64 {
        self.iterations + self.extra
    }
}

/// One batch: the ticks of the loop and of the empty loop next to it. The empty loop runs twice and the shorter time counts: an
/// interrupt in it would make the latency too low. For a unit other than time, `work` is the amount in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Ticks of the timed loop, for all operations.
    pub work: u64,
    /// Ticks of the empty loop.
    pub empty: u64,
    /// Whether the thread was neither switched out nor migrated. For blocking calls: whether no other process used the processor.
    pub undisturbed: bool,
    /// Events that were counted, if the benchmark counts any.
    pub counted: Option<u64>,
    /// Other counts, in the order of the benchmark's counters.
    pub counters: Counters,
    /// Context switches, faults and hardware events; empty if the runner does not count them.
    pub tally: Tally,
}

impl Batch {
    /// Makes a batch in which nothing is counted.
    pub fn new(work: u64, empty: u64, undisturbed: bool) -> Self {
        let (counters, tally) = (Counters::default(), Tally::default());
        Self { work, empty, undisturbed, counted: None, counters, tally }
    }

    /// Makes a batch of the timed loop between two empty ones. It is disturbed if the thread left its processor.
    pub fn between([emptied, worked, emptied_again]: [Span; 3], undisturbed: bool) -> Self {
        let stayed = [emptied, worked, emptied_again].iter().all(|span| span.same_processor);
        Self::new(worked.ticks, emptied.ticks.min(emptied_again.ticks), undisturbed && stayed)
    }

    /// Scales a batch of `operations` operations to the `stated` ones of its case: its time less the empty loop's, and its tally.
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
///
/// # Errors
/// Those of the batch.
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
    /// If the operation gives a wrong result, or if this clock cannot time it.
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch>;
}

/// Untimed hooks around each batch of a loop. They install and remove a handler, give pages back to the kernel, count events.
pub trait BatchHooks: Send {
    /// Is called before a [`settled`](crate::loops::instance::Loop::settled) loop settles. It repairs what others have overwritten.
    fn unsettled(&mut self, _context: &mut LoopContext) -> Result<()> {
        Ok(())
    }

    /// Is called before this many iterations of the loop. It may change the loop's context.
    fn before(&mut self, _context: &mut LoopContext, _iterations: u64) -> Result<()> {
        Ok(())
    }

    /// Is called after the loop. Returns the number of events, if the benchmark counts any.
    fn after(&mut self, _context: &LoopContext) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Whether the loop makes blocking calls, so that switches are part of the operation.
    fn blocks(&self) -> bool {
        false
    }
}
