//! Everything that depends on the processor's architecture. Each architecture has a folder, and this file chooses one. All folders define
//! the same names, so the compiler reports a missing one. An item that an architecture cannot have is `None`, or says why.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub mod architecture;
pub mod call;
pub mod compat;
pub mod cpuid;
pub mod frame;
pub mod memory;
pub mod registers;
pub mod ring3;
pub mod rseq;
pub mod signal;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as chosen;
#[cfg(target_arch = "x86_64")]
use x86_64 as chosen;

#[doc(hidden)]
pub use libc;

pub use chosen::{abi, bare, child, counter, features, mark, software};
