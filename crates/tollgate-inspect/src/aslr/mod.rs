//! Address-space layout randomization, measured: a program is started many times and stopped at its entry point, and the
//! addresses of its regions are compared.
//!
//! `spread` estimates the random bits in a sample of addresses, `uniform` tests that the sample is uniform, and `together` finds
//! regions that move together. `elf` reads the program's file, `allowed` has the bits that the kernel's settings allow. `child`,
//! `traced` and `observed` perform one start.

pub mod allowed;
mod child;
mod elf;
mod initial;
mod maps;
mod observed;
mod region;
#[cfg(test)]
mod simulated;
pub mod spread;
mod study;
pub mod together;
mod traced;
mod uniform;

use std::io;

use tollgate_model::text::{plainly, said_by};

pub use elf::{Elf, ElfKind, NotElf};
pub(crate) use elf::{MACHINES, read as elf_of};
pub use region::{Region, Sighting};
pub use study::{NoStudy, RegionResult, Study, Subject, study};

/// Bytes of the small mapping: one page.
pub const SMALL: u64 = 4096;
/// Bytes of the large mapping: four huge pages.
pub const LARGE: u64 = 8 << 20;

/// The most starts of a study.
pub const MOST_STARTS: u32 = 100_000;

/// Why one start showed nothing.
#[derive(Debug, thiserror::Error)]
pub enum NoStart {
    /// Tracing is refused here.
    #[error("tracing is refused here: ptrace(2): {}", plainly(.0))]
    NotTraced(io::Error),
    /// The call of this name failed.
    #[error("{}: {}", .0, said_by(.0, .1))]
    Failed(&'static str, io::Error),
    /// The loader that it names does not exist.
    #[error("its loader {0:?} does not exist")]
    NoLoader(String),
    /// It ended by itself before its entry point.
    #[error("it ended with status {0} before its entry point")]
    Exited(i32),
    /// A signal ended it.
    #[error("signal {0} ended it before its entry point")]
    Killed(i32),
    /// Its loader, or a library, takes too long.
    #[error("it did not reach its entry point within 10 s")]
    TookTooLong,
    /// The kernel's answer could not be understood.
    #[error("{0}")]
    Unclear(&'static str),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}
