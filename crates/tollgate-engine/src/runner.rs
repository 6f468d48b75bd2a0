//! Stations: where batches run, what they are told, and what they answer.

use serde::{Deserialize, Serialize};
use tollgate_model::text::said_by;

use super::clock::Clock;
use super::timed::Context;
use super::worker::alive;

/// Why a case cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// It cannot exist in this place.
    Skip(String),
    /// It exists here and went wrong.
    Fail(String),
}

impl Refusal {
    /// What an error says of the place: that it cannot have this, unless something has only run short.
    pub fn of(what: &str, error: &std::io::Error) -> Self {
        let sentence = format!("{what}: {}", said_by(what, error));
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN | libc::ENOSPC) => {
                Self::Fail(sentence)
            }
            _ => Self::Skip(sentence),
        }
    }
}

/// What to run: so many iterations of the loop, and before and after it as many of the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Iterations of both loops, at least 1.
    pub iterations: u64,
    /// Extra iterations of the timed loop alone: 0 except in tests that slow an instance on purpose.
    pub extra: u64,
}

/// One batch: the loop's ticks and those of the empty loop next to it.
///
/// The empty loop runs twice, and the shorter of the two counts: an interrupt in it would otherwise
/// make the price too low, and the floor under all prices something that never happened.
///
/// Where what is measured is no time, `work` is the amount in the benchmark's unit, for all operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Ticks of the timed loop.
    pub work: u64,
    /// Ticks of the empty loop.
    pub empty: u64,
    /// The thread was neither switched out nor moved; where it waits by nature, nobody else had the processor.
    pub undisturbed: bool,
    /// Events that were counted meanwhile, where the benchmark counts any.
    pub counted: Option<u64>,
    /// What else was counted, in the order of the benchmark's counters.
    pub counters: Counters,
}

/// Numbers that a benchmark counts beside its price, the rest 0.
pub type Counters = [u64; 4];

/// A batch that nobody disturbed, of a few: where others have the processor, one may be left alone. The last where none was.
///
/// # Errors
/// What the first says that fails.
pub fn of_a_few(mut batch: impl FnMut() -> Result<Batch, Refusal>) -> Result<Batch, Refusal> {
    const TRIES: usize = 3;
    let mut latest = batch()?;
    for _ in 1..TRIES {
        if latest.undisturbed {
            break;
        }
        alive();
        latest = batch()?;
    }
    Ok(latest)
}

/// Where batches run.
pub trait Runner {
    /// Runs one batch.
    ///
    /// # Errors
    /// What the crossing returned instead of what it should; or that this clock cannot time it.
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch, Refusal>;
}

/// What has to happen around each batch of a loop, untimed: a handler installed and taken away again, pages
/// given back to the kernel, events counted.
pub trait Around: Send {
    /// Before the loop goes round so many times. It may change what the loop finds in its context.
    ///
    /// # Errors
    /// Why the batch cannot run.
    fn before(&mut self, context: &mut Context, iterations: u64) -> Result<(), Refusal>;

    /// After it. Returns how many events were counted, where the benchmark counts any.
    ///
    /// # Errors
    /// What went wrong in the batch.
    fn after(&mut self, context: &Context) -> Result<Option<u64>, Refusal>;

    /// Whether the loop waits for somebody else in each iteration, so that being switched out is part of
    /// what is priced.
    fn waits(&self) -> bool {
        false
    }
}
