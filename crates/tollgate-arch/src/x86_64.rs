//! x86-64.

pub mod abi;
pub mod call;
pub mod child;
pub mod compat;
pub mod counter;
pub mod cpuid;
pub mod frame;
pub mod registers;
pub mod rseq;
pub mod signal;
