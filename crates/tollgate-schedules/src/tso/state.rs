use super::buffer::Buffer;

/// The most processes, and the most processors.
pub const MOST: usize = 4;

pub const CELLS: usize = 16;

pub const REGISTERS: usize = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Initial {
    pub memory: [u8; CELLS],
    pub registers: [[u8; REGISTERS]; MOST],
}

/// Everything that the next steps depend on. Unused fields are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub buffers: [Buffer; MOST],
    pub memory: [u8; CELLS],
    pub processes: [Process; MOST],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// The line of the next step; 0 if there is none.
    pub at: u8,
    /// The process for which it waits in [`super::program::Op::WaitForAll`]; 0 otherwise.
    pub j: u8,
    pub left: u8,
    /// Flags of the last comparison or calculation.
    pub flags: u8,
    pub registers: [u8; REGISTERS],
}
