//! Shows checks of locks, and played schedules, as text and as JSON.

mod comparison;
mod figure;
mod json;
mod outcome;
mod screen;
mod text;

pub use comparison::comparison;
pub use figure::draw;
pub use json::{CheckedProgram, SchedulesDocument};
pub use outcome::{Outcome, Played};
pub use screen::{detail, plays, table};
pub use text::fault;
