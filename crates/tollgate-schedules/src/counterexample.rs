//! A schedule step by step, in the form of figures 3 and 10 of the published paper.

use serde::Serialize;

use crate::search::Harm;

/// A schedule and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counterexample {
    /// The violation at its end, or null.
    pub harm: Option<Harm>,
    /// The result, in a sentence.
    pub so: String,
    /// The number of steps before the one from which the schedule repeats after its last step; null if it does not repeat.
    pub back_to: Option<usize>,
    /// The steps, in the order of time.
    pub steps: Vec<Step>,
}

/// One step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// The number of the process, from 0, which is A; null for a step of the machine or the kernel.
    pub process: Option<u8>,
    /// The number of the processor on which it happens, from 0.
    pub processor: u8,
    /// The position in the program, or the part of the machine.
    pub place: String,
    /// The instruction or event.
    pub what: String,
    /// The changes of state, such as `v0 = 0`.
    pub changes: Vec<String>,
}

impl Step {
    /// Returns the name of a process: A, B, C, …
    #[must_use]
    pub fn name(process: u8) -> char {
        char::from(b'A' + process.min(25))
    }
}
