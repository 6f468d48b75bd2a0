//! The view of a traced command.

/// The key of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By system call.
    Call,
    /// By process.
    Process,
    /// By file.
    File,
}

/// The parts of an execution that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// So many rows of each kind, but blocking calls.
    pub top: usize,
    /// So many blocking calls.
    pub blocking: usize,
    /// The key of the sums.
    pub by: By,
    /// The processes as a tree as well.
    pub tree: bool,
    /// The distributions as well.
    pub histogram: bool,
    /// The published rule of 2017 as well.
    pub rule: bool,
}

impl View {
    /// The same with every row.
    #[must_use]
    pub fn with_all_rows(self) -> Self {
        Self { top: usize::MAX, blocking: usize::MAX, ..self }
    }
}
