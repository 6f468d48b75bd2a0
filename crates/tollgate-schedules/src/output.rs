//! Checks of locks, and schedules played forward, as text and as JSON.

mod figure;
mod json;
mod outcome;
mod page;
mod text;

pub use figure::draw;
pub use json::{Document, Record};
pub use outcome::{Outcome, Played};
pub use page::{detail, plays, table};
pub use text::fault;
