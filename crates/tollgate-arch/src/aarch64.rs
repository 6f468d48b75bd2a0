//! arm64.

pub mod abi;
pub mod bare;
pub mod call;
pub mod child;
pub mod compat;
pub mod counter;
pub mod features;
pub mod frame;
pub mod lines;
pub mod mark;
pub mod registers;
pub mod rseq;
pub mod signal;
pub mod software;

/// The name of this architecture.
pub const HERE: crate::architecture::Architecture = crate::architecture::Architecture::Arm64;

/// arm64 has no CPUID instruction.
pub const CPUID: Option<crate::cpuid::Cpuid> = None;

/// arm64 has exception levels and no descriptor tables.
pub const RING3: Option<crate::ring3::Ring3> = None;
