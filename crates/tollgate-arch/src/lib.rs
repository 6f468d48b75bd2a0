//! All that depends on the processor's architecture. Each architecture has a folder, and one is chosen here, once. For arm64
//! there are system calls and sizes of pages: the compiler refuses the rest, and nothing stands in for it.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub mod call;
#[cfg(target_arch = "x86_64")]
pub mod frame;
pub mod memory;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as chosen;
#[cfg(target_arch = "x86_64")]
use x86_64 as chosen;

#[cfg(target_arch = "x86_64")]
pub use x86_64::{abi, child, compat, counter, cpuid, registers, rseq, signal};
