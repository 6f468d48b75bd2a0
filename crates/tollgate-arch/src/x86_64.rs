//! x86-64.

pub mod abi;
pub mod cpuid;
