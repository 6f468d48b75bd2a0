//! Runs compared with a base, as `tollgate compare` prints them.

pub mod condition;
pub mod json;
pub(crate) mod need;
pub mod text;
