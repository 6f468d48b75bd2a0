//! x86-64.

pub mod abi;
pub mod call;
pub mod child;
pub mod compat;
pub mod counter;
mod cpuid;
pub mod frame;
pub mod registers;
pub mod rseq;
pub mod signal;

/// Every processor with 64-bit mode has it.
pub const CPUID: Option<crate::cpuid::Cpuid> = Some(cpuid::cpuid);
