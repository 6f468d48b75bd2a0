//! Whether the kernel itself was moved (KASLR): by its addresses, by the note of the boot stub, by its command line, and
//! last by its build options. A build option says what the kernel can do, not what it did: no conclusion rests on it alone.
//!
//! `evidence` reads, with `options` and the crate's `kcore`; `verdict` concludes.

mod evidence;
mod options;
#[cfg(test)]
mod tests;
mod verdict;

use tollgate_model::Fact;

pub use evidence::{Boot, DirectMap, Evidence, Known, Physical, Source, Symbols, kernel_base};
pub use options::Options;
pub use verdict::{Conclusion, Verdict, conclude};

use crate::machine::{Machine, fact, found};

/// For the registry: moved or not, by its evidence; absent where that does not tell.
pub(crate) fn moved(machine: &Machine) -> Fact {
    let verdict = conclude(&kernel_base(machine));
    match verdict.verdict {
        Verdict::Moved => fact(found(true, verdict.because)),
        Verdict::NotMoved => fact(found(false, verdict.because)),
        Verdict::Unknown => Fact::absent(verdict.because),
    }
}
