//! What threads or processes do again and again: as it is prepared, and as it is made.

use std::io;

/// The numbers that a case gives to what a participant prepares.
pub type Words = [u64; 4];

/// What a participant does again and again.
pub trait Work {
    /// Makes the operation so many times.
    ///
    /// # Errors
    /// The error number of the call that failed.
    fn make(&mut self, times: u64) -> Result<(), i32>;
}

/// A participant, for the preparation of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seat {
    /// Its number, from 0 on.
    pub number: usize,
    /// The numbers of the case.
    pub words: Words,
}

/// An operation that several can make at once.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// Makes a participant's work ready, in its thread or process. It stays until that ends.
    pub prepare: fn(Seat) -> io::Result<Box<dyn Work>>,
    /// Whether switches between threads on one processor are part of the operation.
    pub switches: bool,
}

impl Operation {
    /// An operation in which no thread waits for another one.
    pub const fn steady(prepare: fn(Seat) -> io::Result<Box<dyn Work>>) -> Self {
        Self { prepare, switches: false }
    }
}
