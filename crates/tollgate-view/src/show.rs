//! A run as `tollgate run` and `tollgate show` print it.

pub(crate) mod columns;
pub mod counters;
pub mod csv;
pub mod json;
pub(crate) mod names;
pub mod text;
