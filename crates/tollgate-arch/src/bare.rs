//! A program without a C library.

/// Returns its file. It is linked to a fixed address, and exits at once.
pub fn program() -> &'static [u8] {
    crate::bytes_between!("tollgate_bare_begin", "tollgate_bare_end")
}
