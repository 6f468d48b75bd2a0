//! Whether the kernel itself was moved, and the evidence.

mod json;
mod page;
mod text;

pub use json::Document;
pub use page::page;
