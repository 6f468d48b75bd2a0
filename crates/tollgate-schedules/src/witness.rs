//! A schedule told step by step, as figures 3 and 10 of the published paper tell theirs.

use serde::Serialize;

use crate::search::Harm;

/// A schedule, and what it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// What goes wrong at its end; nothing where a schedule is only played forward.
    pub harm: Option<Harm>,
    /// The steps, in the order of time.
    pub steps: Vec<Step>,
    /// From the last step on everything repeats from the step after this many; absent where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_to: Option<usize>,
    /// What has happened, in one sentence that names processes and instructions.
    pub so: String,
}

/// One step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Whose step it is: 0 is process A. Absent where the machine or the kernel does something of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u8>,
    /// The processor on which it happens, from 0.
    pub processor: u8,
    /// Where the process is, such as `tst+0x8`, or what part of the kernel.
    pub place: String,
    /// The instruction in the words of its assembler, or what happens instead of one.
    pub what: String,
    /// Registers and memory that are different afterwards, such as `v0 = 0`.
    pub changes: Vec<String>,
}

impl Step {
    /// The name of a process: A, B, C, …
    #[must_use]
    pub fn name(process: u8) -> char {
        char::from(b'A' + process.min(25))
    }
}
