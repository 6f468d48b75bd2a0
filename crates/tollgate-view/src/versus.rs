//! Commands of the user whose executions alternated, as they are shown: the others compared with the first, and the parts and the system
//! calls that the differences consist of.
//!
//! Each command in each environment is a member of a session. The figures are those of its executions that were timed; what a
//! difference consists of is known from others, which were traced.

mod cells;
mod difference;
pub mod hyperfine;
pub mod json;
mod matrix;
mod notes;
pub(crate) mod said;
pub(crate) mod split;
mod tables;
mod text;

pub use text::text;
