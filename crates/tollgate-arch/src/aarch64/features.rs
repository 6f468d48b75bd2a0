//! Features of the processor.

/// It is x86-64's.
pub fn has_avx2() -> bool {
    false
}

/// It is x86-64's.
pub fn has_avx512() -> bool {
    false
}
