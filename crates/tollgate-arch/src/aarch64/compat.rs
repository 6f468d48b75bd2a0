//! 32-bit programs.

/// Why there is no 32-bit program to time.
pub const WHY_ABSENT: Option<&str> =
    Some("no 32-bit program is written for arm64, whose newer processors execute none");

/// There is no program.
pub fn frame() -> &'static [u8] {
    &[]
}

/// No address is its own.
pub const BASE: u64 = 0;

/// Takes a loop in 32-bit code of x86, and writes none: [`WHY_ABSENT`] says why.
#[macro_export]
macro_rules! compat_loop {
    ($(#[$doc:meta])* $name:ident = $symbol:literal: $($body:literal),*) => {
        $(#[$doc])*
        fn $name() -> &'static [u8] {
            &[]
        }
    };
}
