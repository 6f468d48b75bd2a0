//! Runs as one self-contained page ([`page`]), and as data for other systems ([`export`]).
//!
//! Both are pure: they turn runs into text. The caller describes benchmarks and facts.

#![forbid(unsafe_code)]

pub mod export;
pub mod page;
