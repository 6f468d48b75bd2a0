//! Features that the processor has and whose registers the kernel saves (CPUID and XCR0).

/// AVX2.
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

/// AVX-512F.
pub fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
}
