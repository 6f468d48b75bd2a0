//! Whether the kernel itself was moved, and the evidence.

mod evidence;
mod json;
mod page;

pub(crate) use evidence::signed;
pub use json::Document;
pub use page::page;
