//! CPUID. Intel SDM volume 2A, "CPUID"; AMD APM volume 3, appendix E.

use std::arch::x86_64::__cpuid_count;
pub use std::arch::x86_64::CpuidResult;

/// Executes CPUID for a leaf (EAX) and a sub-leaf (ECX). Every processor with 64-bit mode has the instruction; if it does
/// not have the leaf, it returns another leaf's values, or zeros.
pub fn cpuid(leaf: u32, sub_leaf: u32) -> CpuidResult {
    #[allow(unused_unsafe, reason = "compilers from 1.94 on know that it is safe")]
    // SAFETY: every processor with 64-bit mode has CPUID.
    unsafe {
        __cpuid_count(leaf, sub_leaf)
    }
}
