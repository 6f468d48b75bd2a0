//! Shows the tables by which a processor enters its kernel, and the walk of an entry through them, as text and as JSON.

mod apart;
mod bytes;
mod entry;
mod given;
mod item;
mod json;
mod kind;
mod live;
mod remarks;
mod screen;
mod star;
mod state;
mod tables;
mod text;
mod walk_state;
mod walks;

pub use bytes::{DecodedBytes, Readings, turned};
pub use entry::Entry;
pub use given::{Unfit, expect_sound, items_of};
pub use item::{Item, ItemRecord, Position};
pub use json::DecodedText;
pub use kind::{InputKind, kinds_for_help};
pub use live::{Live, json::LiveTables};
pub use screen::{render, walk};
pub use tables::render as items;
pub use text::{control, segment, sentences, what};
pub use walks::{Options, Walked};
