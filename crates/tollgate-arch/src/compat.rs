//! 32-bit programs.

use crate::architecture::Architecture;
pub use crate::chosen::compat::{BASE, frame};

/// Why an architecture has no 32-bit program to time.
pub fn why_absent(on: Architecture) -> Option<&'static str> {
    let why = "no 32-bit program is written for arm64, whose newer processors execute none";
    (on == Architecture::Arm64).then_some(why)
}
