//! How many bits of its addresses a program really has at random, and what moved between two processes.

mod json;
mod moved;
mod screen;
mod text;

pub use json::AslrDocument;
pub use moved::{Moved, MovedRegions};
pub use screen::screen;
