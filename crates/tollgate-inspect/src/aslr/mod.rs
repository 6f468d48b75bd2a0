//! Address-space layout randomization, measured: a program is started many times, let run to its entry point, and what was
//! put where is compared from start to start.
//!
//! From the ground up: `spread` tells out of a sample of addresses how many bits are random, with `uniform` as its
//! conscience, and `together` what moves as one. `elf` reads what kind of file the program is, `allowed` what the
//! kernel's settings leave to be random. `child`, `traced` and `observed` make one start; `own` is for a place where nobody
//! may be traced.

pub mod allowed;
mod child;
mod elf;
mod initial;
mod maps;
mod observed;
mod own;
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

pub(crate) use elf::read as elf_of;
pub use elf::{Elf, Kind, NotElf};
pub use own::enter_if_told;
pub use region::{Region, Sighting};
pub use study::{Found, How, NoStudy, Study, Subject, study};

/// Bytes of the small mapping: one page.
pub const SMALL: u64 = 4096;
/// Bytes of the large mapping: four times what a huge page has.
pub const LARGE: u64 = 8 << 20;

/// The most starts that a study may have.
pub const MOST_STARTS: u32 = 100_000;

/// Why one start showed nothing.
#[derive(Debug, thiserror::Error)]
pub enum NoStart {
    /// Tracing is refused here.
    #[error("nobody may be traced here: ptrace(2): {}", plainly(.0))]
    NotTraced(io::Error),
    /// A call failed.
    #[error("{call}: {}", said_by(.call, .error))]
    Failed {
        /// Its name.
        call: &'static str,
        /// What it said.
        error: io::Error,
    },
    /// The loader that it names is not there.
    #[error("its loader {0:?} does not exist")]
    NoLoader(String),
    /// It ended by itself before its entry point.
    #[error("it ended with status {0} before its entry point")]
    Exited(i32),
    /// A signal ended it.
    #[error("signal {0} ended it before its entry point")]
    Killed(i32),
    /// Its loader, or a library, takes its time.
    #[error("it did not come to its entry point within 10 s")]
    TookTooLong,
    /// What the kernel told was not to be understood.
    #[error("{0}")]
    Unclear(&'static str),
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
}
