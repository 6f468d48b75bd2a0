//! Runs compared with a base, as `tollgate compare` prints them.

pub mod json;
pub mod text;
