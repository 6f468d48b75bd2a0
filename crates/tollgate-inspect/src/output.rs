//! The results of ASLR studies and of the search for the kernel's address, as text and as JSON.

pub mod aslr;
pub mod kernel;
