//! The view of a traced command.

use tollgate_model::Traced;

use crate::args::{By, ViewArgs};

/// The parts of an execution that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// So many rows of each kind.
    pub top: usize,
    /// The key of the sums.
    pub by: By,
    /// The processes as a tree as well.
    pub tree: bool,
    /// The distributions as well.
    pub histogram: bool,
}

impl View {
    /// The view that was asked for; by default the one for which the command was traced.
    pub fn of(args: &ViewArgs, traced: &Traced) -> Self {
        let kept = if traced.files.is_empty() { By::Call } else { By::File };
        Self {
            top: args.top,
            by: args.by.unwrap_or(kept),
            tree: args.tree || (args.by.is_none() && !traced.tree.is_empty()),
            histogram: args.histogram,
        }
    }
}
