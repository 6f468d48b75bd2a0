//! The data that every part of tollgate shares: a **run** is the facts of an environment and the measurements made
//! in it; an **estimate** is computed from the samples of a measurement; a **verdict** compares two estimates.
//!
//! Pure data: nothing here reads a clock, a file or the machine.

#![forbid(unsafe_code)]

pub mod boundary;
pub mod bounded;
pub mod compare;
pub mod disturbance;
pub mod estimate;
pub mod events;
pub mod fact;
pub mod measurement;
pub mod own;
pub mod run;
pub mod text;
pub mod traced;
pub mod versus;

pub use boundary::{Boundary, Effect, Reach};
pub use events::{Counter, EventCounts};
pub use fact::{Fact, FactValue, Unknown};
pub use measurement::{
    Case, Counted, Measured, Measurement, Outcome, ParamValue, Params, ProcessRounds, Provenance, Unit,
    parameter,
};
pub use run::{Environment, Facts, Knob, Label, Part, Run, RunId};
pub use tollgate_statistics as stats;
pub use traced::Traced;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
