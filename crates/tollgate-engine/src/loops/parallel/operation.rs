//! Operations that threads or processes repeat: their preparation and their execution.

use std::io;

/// The numbers that a case gives to a participant's preparation.
pub type Words = [u64; 4];

/// An operation that a participant repeats.
pub trait Work {
    /// Makes the operation this many times.
    ///
    /// # Errors
    /// The error number of the call that failed.
    fn make(&mut self, times: u64) -> Result<(), i32>;
}

/// A participant, for the preparation of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// Its number, from 0.
    pub number: usize,
    /// The numbers of the case.
    pub words: Words,
}

/// An operation that several can make at once.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Prepares a participant's work in its thread or process. The work stays until that ends.
    pub prepare: fn(Seat) -> io::Result<Box<dyn Work>>,
    /// Whether switches between threads on one processor are part of the operation.
    pub switches: bool,
}

impl Operation {
    /// Makes an operation in which no thread waits for another.
    pub const fn steady(prepare: fn(Seat) -> io::Result<Box<dyn Work>>) -> Self {
        Self { prepare, switches: false }
    }
}
