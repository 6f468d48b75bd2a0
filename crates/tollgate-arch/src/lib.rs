//! What depends on the processor's architecture. Each architecture has a folder, and one is chosen here, once.

pub mod frame;
pub mod memory;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
use x86_64 as chosen;

pub use chosen::{abi, call, compat, counter, cpuid, registers, signal};
