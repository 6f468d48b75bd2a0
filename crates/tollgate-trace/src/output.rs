//! Shows a traced command as text, as JSON and as a timeline.

mod blocked;
pub mod calibration;
mod calls;
mod columns;
pub mod division;
mod files;
mod histogram;
mod json;
pub mod keys;
mod misaligned;
mod processes;
mod rule;
mod screen;
pub mod text;
pub mod timeline;
mod tree;
mod view;

#[cfg(test)]
pub(crate) mod examples;

use tollgate_model::{Case, Run, Traced};

pub use calls::ranked;
pub use columns::csv;
pub use json::TracedCommand;
pub use screen::{interval, screen};
pub use text::grouped;
pub use view::{By, Stage, View};

/// The only case of a run that `tollgate trace` made.
pub const CASE: &str = "trace/command";

/// Returns the traced command of such a run.
pub fn command_of(run: &Run) -> Option<&Traced> {
    run.measurement(&Case::plain(CASE))?.outcome.measured()?.traced.first()
}
