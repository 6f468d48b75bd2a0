//! x86-64.

pub mod abi;
pub mod call;
pub mod counter;
pub mod cpuid;
