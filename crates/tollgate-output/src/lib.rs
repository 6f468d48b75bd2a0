//! How things look, and nothing of what they mean: [`figures`] with their units, a [`table`] and paragraphs for a terminal, and
//! comma-separated values ([`spreadsheet`]).

#![forbid(unsafe_code)]

pub mod figures;
pub mod spreadsheet;
pub mod table;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
