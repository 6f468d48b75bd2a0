//! How many bits of its addresses a program really has at random.

mod json;
mod screen;
mod text;

pub use json::AslrDocument;
pub use screen::screen;
