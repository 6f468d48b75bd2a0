//! Runs of the lab's guest, and of programs under it, as text and as JSON.

mod entry;
mod explain;
mod json;
mod locks;
mod orders;
mod programs;
mod setup;
mod text;

pub use entry::{has_entries, shares};
pub use explain::{Explained, Instruction, explained};
pub use json::Document;
pub use locks::Locks;
pub use orders::Orders;
pub use programs::{Programs, ended};
pub use setup::{BOOT, Boot, boot, shown_by};
pub use text::{defect, mistake, name, note, obstacle, page, sample};
