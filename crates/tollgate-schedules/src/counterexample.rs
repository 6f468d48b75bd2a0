//! A schedule step by step, in the form of figures 3 and 10 of the published paper.

use serde::Serialize;

use crate::search::Harm;

/// A schedule and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counterexample {
    /// The harm at its end; None where a schedule is only played forward.
    pub harm: Option<Harm>,
    /// The outcome, in one sentence that names processes and instructions.
    pub so: String,
    /// From the last step on everything repeats from the step after this many; None where it does not.
    pub back_to: Option<usize>,
    /// The steps, in the order of time.
    pub steps: Vec<Step>,
}

/// One step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The process of the step: 0 is process A. None for steps of the machine or the kernel.
    pub process: Option<u8>,
    /// The processor on which it happens, from 0.
    pub processor: u8,
    /// The process's position, such as `tst+0x8`, or the part of the kernel.
    pub place: String,
    /// The instruction in its assembler's syntax, or the event instead of one.
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
