//! CPUID. Intel SDM volume 2A, "CPUID"; AMD APM volume 3, appendix E.

use std::arch::x86_64::{__cpuid_count, CpuidResult};

/// The registers that CPUID leaves for a leaf (EAX) and a sub-leaf (ECX). Every processor with 64-bit mode has the instruction; one that
/// does not offer the leaf answers with another's, or with zeros.
pub fn cpuid(leaf: u32, sub_leaf: u32) -> CpuidResult {
    #[allow(unused_unsafe, reason = "compilers from 1.94 on know that it is safe")]
    // SAFETY: every processor with 64-bit mode has CPUID.
    unsafe {
        __cpuid_count(leaf, sub_leaf)
    }
}
