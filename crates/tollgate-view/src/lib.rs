//! What is said of runs: as text ([`table`], [`figures`]), as one self-contained page ([`page`]), and as data for other
//! systems ([`export`]).
//!
//! All of it is pure: it turns runs into values and text, and reads and prints nothing.

#![forbid(unsafe_code)]

pub mod export;
pub mod facts;
pub mod figures;
pub mod page;
pub mod table;
