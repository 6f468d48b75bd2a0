//! The process in which benchmarks run, and the border to its parent.
//!
//! [`supervisor`] starts, watches and ends it; [`worker`] is the code that it runs. It leaves results in [`shared`] memory, and
//! [`record`] has them as plain data. [`own`] has the engine's measurements of itself.

pub(crate) mod frame;
pub(crate) mod own;
pub(crate) mod record;
pub(crate) mod shared;
pub(crate) mod slow_down;
pub(crate) mod supervisor;
pub(crate) mod worker;
