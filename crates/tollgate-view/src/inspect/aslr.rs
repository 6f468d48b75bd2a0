//! How many bits of its addresses a program really has at random.

mod json;
mod page;
mod text;

pub use json::Document;
pub use page::page;
