//! Facts of an environment.

mod affecting;
mod group;
mod hanging;
mod json;
mod page;
mod reasons;
mod screen;
mod sentence;

pub use affecting::affecting;
pub use group::{Group, NOW, WHEN};
pub use json::Document;
pub use page::page;
pub use screen::screen;
pub use sentence::sentence;
