use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek};

use serde::{Serialize, de::DeserializeOwned};

pub(crate) struct Answer(File);

impl Answer {
    pub fn new() -> io::Result<Self> {
        tollgate_os::memfd::create("answer").map(Self)
    }

    /// Writes the answer in the child. Returns the exit status for the child.
    pub fn give<T: Serialize>(&self, answer: &T) -> i32 {
        match serde_json::to_writer(BufWriter::new(&self.0), answer) {
            Ok(()) => 0,
            Err(_) => 1,
        }
    }

    /// Reads the answer after the child has ended.
    ///
    /// # Errors
    /// Fails if reading fails, or if the file does not contain a valid answer.
    pub fn take<T: DeserializeOwned>(mut self) -> io::Result<T> {
        self.0.rewind()?;
        Ok(serde_json::from_reader(BufReader::new(self.0))?)
    }
}
