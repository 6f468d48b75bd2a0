use super::clocks::{Reading, Source, Stretch};
use super::sums::Key;
use crate::operations::Operation;

#[derive(Debug, Clone, Copy)]
pub struct Named {
    pub operation: Operation,
    /// `None` for a call that opens, whose file is known when it returns, or if the file is unknown.
    pub file: Option<u32>,
}

#[derive(Debug)]
pub struct Inside {
    pub key: Key,
    pub began_ns: u64,
    pub arguments: [u64; 6],
    pub named: Option<Named>,
}

#[derive(Debug)]
pub enum Doing {
    /// It is about to become the command: nothing counts.
    Before,
    /// In user code.
    Outside,
    Inside(Box<Inside>),
    /// A system call that was not requested.
    Uncounted,
}

#[derive(Debug)]
pub struct Thread {
    /// Its process's number in the tree.
    pub process: u32,
    pub pid: libc::pid_t,
    pub doing: Doing,
    /// When it last stopped; 0 if it has not yet.
    pub stood_ns: u64,
    pub reading: Reading,
    pub source: Source,
    /// Time since the current call, or the time between two calls, began.
    pub stretch: Stretch,
}

impl Thread {
    pub fn new(process: u32, pid: libc::pid_t, doing: Doing) -> Self {
        Self {
            process,
            pid,
            doing,
            stood_ns: 0,
            reading: Reading::default(),
            source: Source::default(),
            stretch: Stretch::default(),
        }
    }

    pub fn is_inside(&self) -> bool {
        matches!(self.doing, Doing::Inside(_) | Doing::Uncounted)
    }
}
