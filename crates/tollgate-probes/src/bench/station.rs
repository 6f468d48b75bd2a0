//! Stations: where blocks run, what they are told, and what they answer.

use super::clock::Clock;

/// Why a case cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It cannot exist in this place.
    Skip(String),
    /// It exists here and went wrong.
    Fail(String),
}

impl Refusal {
    /// What an error says of the place: that it cannot have this, unless something has only run short.
    pub fn of(what: &str, error: &std::io::Error) -> Self {
        let sentence = format!("{what}: {error}");
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN | libc::ENOSPC) => {
                Self::Fail(sentence)
            }
            _ => Self::Skip(sentence),
        }
    }
}

/// What to run: so many iterations of the loop, and before and after it as many of the empty one.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// Iterations of both loops, at least 1.
    pub iterations: u64,
    /// Extra iterations of the timed loop alone: 0 except in tests that slow an arm on purpose.
    pub extra: u64,
}

/// One block: the loop's ticks and those of the empty loop next to it.
///
/// The empty loop runs twice, and the shorter of the two counts: an interrupt in it would otherwise
/// make the price too low, and the floor under all prices something that never happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Ticks of the timed loop.
    pub work: u64,
    /// Ticks of the empty loop.
    pub empty: u64,
    /// The thread was neither switched out nor moved.
    pub undisturbed: bool,
}

/// Where blocks run.
pub trait Station {
    /// Runs one block.
    ///
    /// # Errors
    /// What the crossing returned instead of what it should; or that this clock cannot time it.
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal>;
}
