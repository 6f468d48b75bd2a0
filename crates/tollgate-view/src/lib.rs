//! Runs as one self-contained page that needs nothing else ([`page`]), and as data for the systems that teams already have ([`export`]).
//!
//! Both are pure: they take runs and give text. What is known of benchmarks and facts comes from who calls.

#![forbid(unsafe_code)]

pub mod export;
pub mod page;
