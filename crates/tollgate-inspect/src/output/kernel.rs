//! Whether the kernel itself was moved, and the evidence.

mod evidence;
mod json;
mod named;
mod screen;

pub use json::KernelDocument;
pub use named::{Before, named_screen};
pub use screen::screen;
