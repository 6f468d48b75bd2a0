//! CPUID.

use std::arch::x86_64::__cpuid_count;

use crate::cpuid::CpuidResult;

/// Executes CPUID for a leaf (EAX) and a sub-leaf (ECX). Every processor with 64-bit mode has the instruction.
pub fn cpuid(leaf: u32, sub_leaf: u32) -> CpuidResult {
    #[allow(unused_unsafe, reason = "compilers from 1.94 on know that it is safe")]
    // SAFETY: every processor with 64-bit mode has CPUID.
    let std::arch::x86_64::CpuidResult { eax, ebx, ecx, edx } = unsafe { __cpuid_count(leaf, sub_leaf) };
    CpuidResult { eax, ebx, ecx, edx }
}
