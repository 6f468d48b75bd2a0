//! A comparison of two runs as it is shown: its columns, the rows that fit, the notes below them, the causes, and what would
//! decide it. `compare`, sessions, builds, `versus`, explanations and reports choose from these, in text, Markdown, pages, CSV
//! and JSON.

pub(crate) mod alternating;
pub(crate) mod block;
mod causes;
pub mod columns;
pub mod condition;
pub mod csv;
mod facts;
pub mod json;
pub(crate) mod layouts;
pub(crate) mod need;
pub(crate) mod notes;
pub(crate) mod processor;
mod rows;
pub(crate) mod sentences;
pub mod text;
