//! One thread that is traced.

use super::clocks::{Reading, Source, Stretch};
use super::sums::Key;
use crate::operations::Operation;

/// The file of a call.
#[derive(Debug, Clone, Copy)]
pub struct Named {
    pub operation: Operation,
    /// None of a call that opens: its file is known when it returns. Else none where it is unknown.
    pub file: Option<u32>,
}

/// A system call that a thread is in.
#[derive(Debug)]
pub struct Inside {
    pub key: Key,
    pub began_ns: u64,
    pub arguments: [u64; 6],
    /// The file that it is about, where that is asked for.
    pub named: Option<Named>,
}

#[derive(Debug)]
pub enum Doing {
    /// It is on the way to being the command: nothing counts.
    Before,
    /// Its program's own work.
    Outside,
    Inside(Box<Inside>),
    /// A system call that was not asked for.
    Uncounted,
}

#[derive(Debug)]
pub struct Thread {
    /// Its process's number in the tree.
    pub process: u32,
    /// Its process's number in the kernel.
    pub pid: libc::pid_t,
    pub doing: Doing,
    /// When it was heard of last; 0 for not yet.
    pub stood_ns: u64,
    pub reading: Reading,
    pub source: Source,
    /// The time at which the call, or the time between two, began.
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

    /// Whether it is in a call, as far as is known.
    pub fn is_inside(&self) -> bool {
        matches!(self.doing, Doing::Inside(_) | Doing::Uncounted)
    }
}
