//! Presents rows without knowing their meaning. Every format shows the [`value`]s of [`mod@column`]s: a terminal ([`table`], the only one with
//! a width), [`markdown`], a page ([`html`]), comma-separated values ([`spreadsheet`]) and [`json`]. [`figures`] writes figures.

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
