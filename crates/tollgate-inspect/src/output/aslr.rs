//! How many bits of its addresses a program really has at random, and what moved between two processes.

mod json;
mod moved;
mod screen;
mod text;

pub use json::Document;
pub use moved::{Moved, Record};
pub use screen::screen;
