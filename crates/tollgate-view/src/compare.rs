//! Runs compared with a base, as `tollgate compare` prints them.

pub(crate) mod alternating;
pub mod columns;
pub mod condition;
pub mod csv;
pub(crate) mod facts;
pub mod json;
pub(crate) mod need;
pub(crate) mod processor;
pub mod text;
