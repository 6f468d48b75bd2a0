//! The probes, one file each, and the bench that times them.
//!
//! A **probe** is a static description and a function that prepares an arm; a **suite** is a folder
//! of probes. [`registry`] is the only list of them. Everything that reads a clock is in [`bench`].

pub mod bench;
#[cfg(test)]
mod disassembly;
mod gates;
pub mod registry;

pub use registry::{Probe, SUITES, Selection, Suite};
