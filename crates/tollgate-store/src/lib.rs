//! Runs in files.

#![forbid(unsafe_code)]

pub mod destination;
pub mod document;
pub mod edit;
pub mod fleet;
pub mod kept;
pub mod kind;
pub mod writing;

pub use destination::Destination;
pub use document::KeepError;
pub use kept::{FindError, find, find_of};
pub use kind::Kind;
