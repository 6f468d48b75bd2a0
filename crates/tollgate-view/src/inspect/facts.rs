//! Facts of an environment.

mod group;
mod hanging;
mod json;
mod page;
mod reasons;
mod sentence;

pub use group::{Group, NOW, WHEN};
pub use json::Document;
pub use page::page;
pub use sentence::sentence;
