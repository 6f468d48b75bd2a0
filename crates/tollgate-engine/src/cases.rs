//! The cases to measure, and how a run spends its time on them: [`benchmark`] has suites, benchmarks and cases, [`selection`] the
//! chosen ones, [`aspect`] the measurements of an environment itself. [`plan`] is the input of a run, [`run`] its output.

pub mod aspect;
pub mod benchmark;
pub(crate) mod fixture;
pub(crate) mod headline;
pub mod plan;
pub(crate) mod run;
pub mod selection;
