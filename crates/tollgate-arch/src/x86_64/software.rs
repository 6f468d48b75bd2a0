//! Whether software executes instructions.

/// CPUID names what executes them.
pub const IS_SOFTWARE: Option<unsafe fn() -> bool> = None;
