//! arm64.

pub mod abi;
pub mod call;
pub mod child;
pub mod counter;
pub mod frame;
pub mod registers;
pub mod rseq;
pub mod signal;
