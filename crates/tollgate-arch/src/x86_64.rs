//! x86-64.

pub mod abi;
pub mod bare;
pub mod call;
pub mod child;
pub mod compat;
pub mod counter;
mod cpuid;
pub mod features;
pub mod frame;
pub mod lines;
pub mod mark;
pub mod registers;
mod ring3;
pub mod rseq;
pub mod signal;
pub mod software;

/// The name of this architecture.
pub const HERE: crate::architecture::Architecture = crate::architecture::Architecture::X86_64;

/// Every processor with 64-bit mode has CPUID.
pub const CPUID: Option<crate::cpuid::Cpuid> = Some(cpuid::cpuid);

/// Programs run in ring 3.
pub const RING3: Option<crate::ring3::Ring3> = Some(crate::ring3::Ring3 {
    segments: ring3::segments,
    descriptor: ring3::descriptor,
    store: ring3::store,
    through: ring3::through,
    fault: ring3::fault,
});
