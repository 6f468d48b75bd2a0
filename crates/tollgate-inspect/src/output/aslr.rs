//! Random bits in the addresses of a program.

mod json;
mod screen;
mod text;

pub use json::AslrDocument;
pub use screen::screen;
