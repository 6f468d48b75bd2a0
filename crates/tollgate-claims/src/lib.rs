//! Published experiments beside this machine's figures: what was measured, the figures as printed, whether each claim holds here,
//! the errors of the sources, and the questions that they left open.
//!
//! The data is in `claims/`, one JSON file for each experiment ([`data`]). A cell of a table is either a printed figure or a
//! `quantity`, which names the figure of this machine to show there. [`told()`] evaluates an experiment once; text and JSON are
//! written from the result.

#![forbid(unsafe_code)]

pub mod data;
mod figure;
mod known;
pub mod published;
mod quantity;
mod screen;
mod told;
mod verdict;

pub use data::{Ask, Cell, Experiment};
pub use known::{Config, Known};
pub use quantity::Quantity;
pub use screen::screen;
pub use told::{ClaimsDocument, Told, told};
pub use verdict::to_repeat;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
