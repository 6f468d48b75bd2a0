//! Reads Linux kernel configurations, counts their options by area, and compares them.
//!
//! [`read()`] and [`open`] read a configuration from text, also gzip-compressed as in /proc/config.gz. One table, [`AREAS`], has
//! the [`Area`] of each option, its former names, and the latencies that it affects. [`compare()`] aligns several configurations
//! by the current names of their options.
//!
//! A configuration only says what was built. [`parameters`] reads a kernel command line, which can change much of it, and
//! [`overridden`] lists the options that it changes.
//!
//! Every input is untrusted: reads and unpacking are bounded, and no input makes this crate panic.
//!
//! Files, from the ground up: `error`; `value` and `text` (the format); `not_text`; `read`; `areas`, `compare`, `command_line`;
//! [`output`], which shows one configuration, or the differences of several.

#![forbid(unsafe_code)]

mod areas;
mod command_line;
mod compare;
mod error;
mod not_text;
pub mod output;
mod read;
mod text;
mod value;

pub use areas::{AREAS, Affects, Area, Entry, Identity, Machine, Without, identity};
pub use command_line::{Overridden, overridden, parameter, parameters};
pub use compare::{Counter, Counts, Difference, DifferenceKind, compare, counter};
pub use error::ConfigError;
pub use read::{Reading, open, read};
pub use text::{Configuration, Foreign, Repeated, parse};
pub use value::Value;

// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
