//! What was found of random addresses and of the kernel's own, as text and as JSON.

pub mod aslr;
pub mod kernel;
