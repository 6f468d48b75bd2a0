//! What every part of tollgate agrees on: a **run** is the facts of a place and the measurements
//! made there; a **price** is what the samples of a measurement say when they are looked at; a
//! **verdict** is what two prices say when they are held side by side.
//!
//! Pure data: nothing here reads a clock, a file or the machine.
//!
//! - [`run`]: the document that is kept, and how an untrusted one is read.
//! - [`bounded`]: the bounds that hold while it is read.
//! - [`fact`]: something known of the place, or unknown with the reason.
//! - [`measurement`]: samples as they were taken, never a figure derived from them.
//! - [`own`]: the names of what the bench measures of itself.
//! - [`stats`]: order statistics and the intervals that need no distribution.
//! - [`estimate`]: median, interval, floor, modes and spread of one measurement.
//! - [`text`]: text that anybody may have written, made fit to be shown.
//! - [`sort`]: small sorts.
//! - [`traced`]: where a command's time went.
//! - [`compare`]: verdicts, paired within a run and unpaired between two.
//! - [`boundary`]: what a benchmark crosses and a fact affects.

#![forbid(unsafe_code)]

pub mod boundary;
pub mod bounded;
pub mod compare;
pub mod estimate;
pub mod fact;
pub mod measurement;
pub mod own;
pub mod run;
pub mod sort;
pub mod stats;
pub mod text;
pub mod traced;

pub use boundary::{Boundary, Effect, Reach};
pub use fact::{Fact, FactValue, Unknown};
pub use measurement::{
    Case, Counted, Counter, Measured, Measurement, Outcome, ParamValue, Params, ProcessRounds, Provenance,
    Unit,
};
pub use run::{Environment, Facts, Label, Run, RunId};
pub use traced::Traced;
