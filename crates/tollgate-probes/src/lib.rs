//! The probes, one file each, and the bench that times them.
//!
//! A [`probe`] is a static description and a function that prepares an arm; a suite is a folder of
//! probes. [`registry`] is the only list of them, [`selection`] chooses among them by pattern.
//! Everything that reads a clock is in [`mod@bench`].

pub mod bench;
#[cfg(test)]
mod disassembly;
mod files;
mod gates;
mod lines;
mod locks;
mod mapping;
pub mod probe;
mod processes;
pub mod registry;
pub mod selection;
mod syscall;
mod traps;
mod uring;
mod workloads;

pub use probe::{Extent, Probe, Suite};
pub use registry::{SUITES, find};
pub use selection::{Selection, UnknownPattern};
pub use workloads::Size;
