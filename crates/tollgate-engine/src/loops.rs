//! Ways to run a batch of operations, and to count events next to its time.
//!
//! [`runner`] is their common interface, and [`instance`] a case that is ready to run. [`timed`] has loops of instructions,
//! [`compat`] such loops in a 32-bit program, [`contended`] a loop with partners on other processors, [`parallel`] threads or
//! processes that make one operation at once, [`settling`] a loop in its steady state, [`own_process`] instances in a process of
//! their own, and [`experiment`] one action that gives several measurements.

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
