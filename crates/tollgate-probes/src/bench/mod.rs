//! The bench: everything between "measure these cases" and their samples.
//!
//! Read in this order: `course` is a whole run from audition to measurements, `contest` the arms of
//! one suite on that way; `plan` says how the time is spent; `worker` is what happens inside one fresh
//! process, `supervisor` what its parent does about it, and `ledger` the memory between the two. `arm`
//! is a case made ready, `station` where its blocks run, `timed` the loops that are timed, `compat` the
//! 32-bit program, `group` the processes that end together, `apart` another process for some arms, `beside` what is timed while other threads do something, `experiment` what answers several questions at once,
//! `room` how much may be taken here, `site` where files are measured, `clock` the only clock, `own` what the bench measures of itself.

pub mod apart;
pub mod arm;
pub mod beside;
pub mod clock;
mod compat;
mod contest;
mod course;
pub mod cpu;
mod ending;
pub mod experiment;
#[cfg(test)]
mod faults;
pub(crate) mod group;
pub mod interrupt;
mod ledger;
mod own;
pub mod plan;
mod random;
pub mod room;
pub mod site;
pub mod station;
mod supervisor;
pub mod timed;
mod worker;

pub use apart::Apart;
pub use arm::{Arm, Loop};
pub use compat::Entry;
pub use course::{BenchError, Errand, Findings, Progress, measure};
pub(crate) use ending::Ending;
pub use experiment::{Experiment, Shared};
#[cfg(test)]
pub(crate) use ledger::MAX_ARMS;
pub use own::OWN_PROBES;
pub use plan::Plan;
pub(crate) use random::Random;
pub use room::{Allowed, Room};
pub use site::Site;
pub use station::{Around, Block, Order, Refusal, Station, Tallies, of_a_few};
pub use timed::{Context, Timed, TimedLoop};
pub(crate) use worker::die_with_parent;
pub use worker::{alive, enter_if_told};
