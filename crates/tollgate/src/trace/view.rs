//! How a followed command is looked at.

use tollgate_model::Traced;

use crate::args::{By, ViewArgs};

/// What of an execution is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// So many rows of each kind.
    pub top: usize,
    /// What the time is added up by.
    pub by: By,
    /// The processes as a tree as well.
    pub tree: bool,
    /// The distributions as well.
    pub histogram: bool,
}

impl View {
    /// What was asked for; where nothing was said, what was added up when the command was followed.
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
