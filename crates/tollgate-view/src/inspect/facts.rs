//! Facts of an environment.

mod affecting;
mod group;
mod hanging;
mod json;
mod listing;
mod reasons;
mod screen;
mod sentence;

pub use affecting::affecting;
pub use group::{Group, NOW, WHEN};
pub use json::FactsDocument;
pub use listing::listing;
pub use screen::screen;
pub use sentence::sentence;
