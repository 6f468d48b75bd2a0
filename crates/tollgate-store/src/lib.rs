//! Runs in files.

#![forbid(unsafe_code)]

pub mod destination;
pub mod document;
pub mod edit;
mod find;
pub mod fleet;
pub mod kept;
pub mod kind;
mod meant;
pub mod writing;

pub use destination::Destination;
pub use document::KeepError;
pub use find::{
    find, find_kept_session, find_newest_of, find_newest_session_of, find_of, find_runs, find_session,
};
pub use kept::FindError;
pub use kind::RunKind;
