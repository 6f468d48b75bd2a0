//! Runs in files.
//!
//! - [`document`]: reading a run document of unknown origin.
//! - [`kept`]: the directory of the user's runs, and how one is found by file, label, id or `last`.
//! - [`destination`]: where a new run goes.
//! - [`fleet`]: a directory that many machines share or synchronize.
//! - [`writing`]: a file is there whole or not at all.

#![forbid(unsafe_code)]

pub mod destination;
pub mod document;
pub mod fleet;
pub mod kept;
pub mod writing;

pub use destination::Destination;
pub use document::KeepError;
pub use kept::{FindError, find};
