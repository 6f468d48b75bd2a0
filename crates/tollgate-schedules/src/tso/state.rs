//! All that the next steps depend on, and how much of it there is.

use super::buffer::Buffer;

/// Processes, and processors, at most.
pub const MOST: usize = 4;

/// Words of memory, at most.
pub const CELLS: usize = 16;

/// Registers of a process, at most.
pub const REGISTERS: usize = 6;

/// The values in which every schedule begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Initial {
    pub memory: [u8; CELLS],
    pub registers: [[u8; REGISTERS]; MOST],
}

/// Everything that the future depends on. Unused fields are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The store buffer of each processor.
    pub buffers: [Buffer; MOST],
    pub memory: [u8; CELLS],
    pub processes: [Process; MOST],
}

/// Where a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// The line whose step is next; 0 when there is none.
    pub at: u8,
    /// For whom it waits in [`super::program::Op::WaitForAll`]; 0 elsewhere.
    pub j: u8,
    /// Rounds that it has not finished.
    pub left: u8,
    /// Of the last comparison or calculation.
    pub flags: u8,
    pub registers: [u8; REGISTERS],
}
