//! How things look, and nothing of what they mean. A field of a row is a [`mod@column`], whose [`value`]s every format shows in its own
//! way: a terminal ([`table`], which alone knows a width), [`markdown`], a page ([`html`]), comma-separated values ([`spreadsheet`])
//! and [`json`]. [`figures`] says how figures are written.

#![forbid(unsafe_code)]

pub mod column;
pub mod figures;
pub mod html;
pub mod json;
pub mod markdown;
pub mod markup;
pub mod spreadsheet;
pub mod table;
pub mod value;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
