//! Whether the kernel itself was moved (KASLR): from its addresses, the note of the boot stub, its command line, and last its
//! build options. A build option says what the kernel can do, not what it did: no conclusion rests on it alone.
//!
//! `evidence` reads, with `symbol`, `options` and the crate's `kcore`; `verdict` concludes. `named` looks for symbols that a
//! user names, also in `image`.

mod evidence;
mod image;
mod named;
mod options;
mod symbol;
#[cfg(test)]
mod tests;
mod verdict;

use tollgate_model::Unknown;

pub use evidence::{Boot, DirectMap, Evidence, Known, Physical, Symbols, kernel_base};
pub use named::{Address, Named, Renamed, is_a_move, named};
pub use options::Options;
pub use symbol::Symbol;
pub use verdict::{Conclusion, Ground, Verdict, conclude};

pub use crate::machine::Found as Source;
use crate::machine::{Answer, Machine, found};

/// The fact: moved or not, with the evidence; absent if that is not conclusive.
pub(crate) fn moved(machine: &Machine) -> Answer<bool> {
    let Conclusion { verdict, because, .. } = conclude(&kernel_base(machine));
    match verdict {
        Verdict::Moved => found(true, because),
        Verdict::NotMoved => found(false, because),
        Verdict::Unknown => Err(Unknown::Absent(because)),
    }
}
