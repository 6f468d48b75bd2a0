//! The benchmarks, one file each, in suites.
//!
//! A [`Benchmark`] is a static description and a function that prepares an instance; a suite is a folder of benchmarks.
//! `registry` is their only list, and `selection` chooses among them by pattern. The engine reads the clock.
//!
//! [`Benchmark`]: tollgate_engine::benchmark::Benchmark

mod checks;
pub mod command;
mod descriptor;
#[cfg(test)]
mod disassembly;
mod entry;
mod environments;
mod files;
mod ipc;
mod locks;
#[cfg(test)]
#[path = "../../../tests/machines.rs"]
mod machines;
mod memory;
#[cfg(test)]
mod neighbours;
mod prelude;
mod processes;
mod record_lock;
pub mod registry;
mod scaling;
pub mod selection;
mod server;
#[cfg(test)]
mod testing;
mod traps;
mod uring;
mod workloads;

pub use processes::fixed_program;
pub use registry::{SUITES, find};
pub use selection::{UnknownPattern, large_files, matches, select, wildcard, with_file_size};
pub use tollgate_engine::benchmark::{Benchmark, Extent, Suite};
pub use traps::needs_kernel_module;
pub use workloads::Size;
