//! Runs compared with a base, as `tollgate compare` prints them.

pub(crate) mod alternating;
pub(crate) mod block;
mod causes;
pub mod columns;
pub mod condition;
pub mod csv;
mod facts;
pub mod json;
pub(crate) mod need;
mod notes;
pub(crate) mod processor;
pub(crate) mod rows;
pub(crate) mod sentences;
pub mod text;
