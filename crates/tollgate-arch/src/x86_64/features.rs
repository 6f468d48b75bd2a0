//! Features that the processor has and whose registers the kernel saves (CPUID and XCR0).

/// Operations on memory that are atomic in one instruction: LOCK, which every processor has.
pub fn has_atomics() -> bool {
    true
}

/// Only arm64 has DC ZVA.
pub fn has_zva() -> bool {
    false
}

/// Only arm64 has ID registers.
pub fn emulates_id_registers() -> bool {
    false
}

/// Other processors drop translations when an interrupt tells them to (arch/x86/mm/tlb.c).
pub const FLUSHES_BY_INTERRUPTS: bool = true;

/// AVX2.
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

/// AVX-512F.
pub fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
}
