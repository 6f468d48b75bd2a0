//! The bench: everything between "measure these cases" and their samples.
//!
//! Read in this order: `course` is a whole run from calibration to measurements, `schedule` the instances of
//! one suite on that way; `plan` says how the time is spent; `worker` is what happens inside one fresh
//! process, `supervisor` what its parent does about it, and `shared` the memory between the two. `instance`
//! is a case made ready, `runner` where its batches run, `timed` the loops that are timed, `compat` the
//! 32-bit program, `group` the processes that end together, `apart` another process for some instances, `beside` what is timed while other threads do something, `experiment` what answers several questions at once,
//! `room` how much may be taken here, `storage` where files are measured, `clock` the only clock, `own` what the bench measures of itself.

pub mod benchmark;
pub mod clock;
mod compat;
pub mod contended;
pub mod cpu;
mod ending;
pub mod experiment;
#[cfg(test)]
mod faults;
pub mod group;
pub mod instance;
pub mod interrupt;
pub mod isolated;
pub mod limits;
mod measure;
mod own;
pub mod plan;
mod random;
pub mod runner;
mod schedule;
pub mod selection;
mod shared;
pub mod storage;
mod supervisor;
pub mod timed;
mod worker;

pub use compat::Entry;
pub use ending::Ending;
pub use experiment::{Experiment, Shared};
pub use instance::{Instance, Loop};
pub use isolated::Isolated;
pub use limits::{Allowed, Limits};
pub use measure::{BenchError, Findings, Progress, RunContext, measure};
pub use own::OWN_BENCHMARKS;
pub use plan::Plan;
pub use random::Random;
pub use runner::{Around, Batch, Counters, Order, Refusal, Runner, of_a_few};
pub use selection::{Group, Selection};
pub use shared::MAX_INSTANCES;
pub use storage::Storage;
pub use timed::{Context, Timed, TimedLoop};
pub use worker::die_with_parent;
pub use worker::{alive, enter_if_told};
