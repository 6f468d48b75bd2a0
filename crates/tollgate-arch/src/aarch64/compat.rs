//! 32-bit programs.

/// There is no program.
pub fn frame() -> &'static [u8] {
    &[]
}

/// No address is its own.
pub const BASE: u64 = 0;

/// Takes a loop in 32-bit code of x86, and writes none: [`why_absent`](crate::compat::why_absent) says why.
#[macro_export]
macro_rules! compat_loop {
    ($(#[$doc:meta])* $name:ident = $symbol:literal: $($body:literal),*) => {
        $(#[$doc])*
        fn $name() -> &'static [u8] {
            &[]
        }
    };
}
