//! What depends on the processor's architecture. Each architecture has a folder, and one is chosen here, once.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{abi, call, counter, cpuid};
