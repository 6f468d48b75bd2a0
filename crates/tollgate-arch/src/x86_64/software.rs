//! Whether software executes instructions.

/// No measurement is needed: CPUID names the software that executes instructions.
pub const IS_SOFTWARE: Option<unsafe fn() -> bool> = None;
