//! The data that every part of tollgate shares: a **run** is the facts of an environment and the measurements made
//! in it; an **estimate** is computed from the samples of a measurement; a **verdict** compares two estimates.
//!
//! Pure data: nothing here reads a clock, a file or the machine.
//!
//! - [`run`]: the run document, and how an untrusted one is read.
//! - [`bounded`]: the bounds that hold while it is read.
//! - [`fact`]: a property of the environment, known with its source or unknown with the reason.
//! - [`measurement`]: samples as they were taken, never a figure derived from them. [`events`]: what was counted beside them.
//! - [`own`]: the names of the engine's own benchmarks.
//! - [`stats`]: order statistics and distribution-free intervals; a crate of its own.
//! - [`disturbance`]: which processes something else slowed.
//! - [`estimate`]: median, interval, min, modes and spread of one measurement.
//! - [`text`]: untrusted text, made safe to show.
//! - [`traced`]: the executions of traced commands.
//! - [`versus`]: commands of the user that are compared.
//! - [`compare`]: verdicts, paired within a run and unpaired between two.
//! - [`boundary`]: the boundaries that benchmarks cross and facts affect.

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
