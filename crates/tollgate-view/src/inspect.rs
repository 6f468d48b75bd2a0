//! The state that determines latencies, as text and as JSON.

pub mod aslr;
pub mod config;
pub mod facts;
pub mod kernel;
