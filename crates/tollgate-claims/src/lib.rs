//! Published experiments beside this machine's figures: what was measured, the figures as printed, each claim's verdict here, the errors of
//! the sources, and the questions that they left open.
//!
//! The data lies in `claims/` of this crate, a JSON file an experiment ([`data`]). A cell of a table is either a printed figure or a
//! `quantity`, which names the figure of this machine in its place. [`told()`] evaluates an experiment once; text and JSON are written from that.

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

// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
