//! CPUID, which x86-64 alone has. Intel SDM volume 2A, "CPUID"; AMD APM volume 3, appendix E.

pub use crate::chosen::CPUID;

/// The registers after CPUID.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "they are the registers")]
pub struct CpuidResult {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// Executes CPUID for a leaf and a subleaf. If the processor does not have the leaf, it returns another leaf's values, or zeros.
pub type Cpuid = fn(leaf: u32, sub_leaf: u32) -> CpuidResult;
