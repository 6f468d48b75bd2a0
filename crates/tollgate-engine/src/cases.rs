//! The cases that are measured, and how a run spends its time on them.
//!
//! [`benchmark`] has suites, benchmarks and cases, [`selection`] the chosen ones, [`aspect`] what is measured of an environment itself; [`plan`]
//! and [`run`] are what a run is given and what it tells.

pub mod aspect;
pub mod benchmark;
pub(crate) mod fixture;
pub(crate) mod headline;
pub mod plan;
pub(crate) mod run;
pub mod selection;
