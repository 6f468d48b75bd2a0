//! Whether the kernel itself was moved (KASLR): by where it is, by what the boot stub noted, by how it was told to start,
//! and last by how it was built. What it was built for is not what it did: no conclusion rests on that alone.
//!
//! `evidence` reads, `verdict` concludes, `options` and `core` are what it reads.

mod core;
mod evidence;
mod options;
#[cfg(test)]
mod tests;
mod verdict;

use tollgate_model::Fact;

pub(crate) use core::abridged;
pub use evidence::{Boot, DirectMap, Evidence, Physical, Symbols, kernel_base};
pub use options::Options;
pub use verdict::{Conclusion, Verdict, conclude};

use crate::machine::{Machine, fact, found};

/// What is known of where the kernel is, with where it was read.
pub type Told<T> = Result<Source<T>, tollgate_model::Unknown>;

/// A value and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source<T> {
    /// The value.
    pub value: T,
    /// A path, or a path and what in it.
    pub source: String,
}

/// For the registry: moved or not, by its evidence; absent where that does not tell.
pub(crate) fn moved(machine: &Machine) -> Fact {
    let verdict = conclude(&kernel_base(machine));
    match verdict.verdict {
        Verdict::Moved => fact(found(true, verdict.because)),
        Verdict::NotMoved => fact(found(false, verdict.because)),
        Verdict::Unknown => Fact::absent(verdict.because),
    }
}
