//! Ways to run a batch of operations, and what is counted beside its time.
//!
//! [`runner`] is the interface of them all, [`instance`] a case that is ready to run. [`timed`] has loops written in instructions, [`compat`] the same in
//! a 32-bit program, [`contended`] a loop with partners on other processors, [`parallel`] threads or processes that make one operation at the
//! same time, [`settling`] a loop in its steady state, [`own_process`] instances in a process of their own, [`experiment`] one action that gives
//! several measurements.

pub(crate) mod compat;
pub mod contended;
pub(crate) mod context;
pub mod events;
pub mod experiment;
pub(crate) mod heartbeat;
pub mod instance;
pub mod own_process;
pub mod parallel;
pub(crate) mod runner;
pub(crate) mod settling;
pub mod timed;
