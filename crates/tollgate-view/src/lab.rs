//! Runs of the lab's guest as text and as JSON.

mod entry;
mod explain;
mod json;
mod text;

pub use entry::{has_entries, shares};
pub use explain::{Explained, Instruction, explained};
pub use json::Document;
pub use text::{defect, mistake, name, note, obstacle, page, sample};
