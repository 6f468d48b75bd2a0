//! 32-bit programs.

/// Returns no bytes: arm64 has no 32-bit program here.
pub fn frame() -> &'static [u8] {
    &[]
}

/// No load address, as there is no program.
pub const BASE: u64 = 0;

/// Takes a loop in 32-bit x86 code and writes none: [`why_absent`](crate::compat::why_absent) says why.
#[macro_export]
macro_rules! compat_loop {
    ($(#[$doc:meta])* $name:ident = $symbol:literal: $($body:literal),*) => {
        $(#[$doc])*
        fn $name() -> &'static [u8] {
            &[]
        }
    };
}
