//! What a process found, for the process that made it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek};

use serde::{Serialize, de::DeserializeOwned};

/// A file in memory that a child writes and its parent reads.
pub(crate) struct Answer(File);

impl Answer {
    pub fn new() -> io::Result<Self> {
        tollgate_os::memfd::create("answer").map(Self)
    }

    /// Writes it, in the child. The exit status with which the child is to end.
    pub fn give<T: Serialize>(&self, answer: &T) -> i32 {
        match serde_json::to_writer(BufWriter::new(&self.0), answer) {
            Ok(()) => 0,
            Err(_) => 1,
        }
    }

    /// Reads it, when the child has ended.
    ///
    /// # Errors
    /// Those of reading, and of a text that is no such answer.
    pub fn take<T: DeserializeOwned>(mut self) -> io::Result<T> {
        self.0.rewind()?;
        Ok(serde_json::from_reader(BufReader::new(self.0))?)
    }
}
