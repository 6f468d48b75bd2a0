//! The choice of what to show of a traced command.

/// How times are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By system call.
    Call,
    /// By process.
    Process,
    /// By file.
    File,
}

/// The parts of an execution to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// The most rows of each kind, except blocking calls.
    pub top: usize,
    /// The most rows of blocking calls.
    pub blocking: usize,
    /// How times are grouped.
    pub by: By,
    /// Whether to show the process tree as well.
    pub tree: bool,
    /// Whether to show distributions as well.
    pub histogram: bool,
    /// Whether to show the published rule of 2017 as well.
    pub rule: bool,
    /// The stage of the execution.
    pub stage: Stage,
}

/// When an execution is shown, which explains missing sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is a kept run: the sums may not have been requested.
    Kept,
    /// It has just been traced, with the sums that are shown.
    Traced,
    /// It is ongoing, and an interval of it is shown.
    GoesOn,
}

impl Stage {
    pub(super) fn without_processes(self) -> &'static str {
        match self {
            Self::Kept => {
                "Its processes were not summed; `tollgate trace --by process` or `--tree` does that, if its backend can."
            }
            Self::Traced => "Its processes are not known to this backend.",
            Self::GoesOn => "Processes are summed over the whole time and shown at the end.",
        }
    }

    pub(super) fn without_files(self) -> &'static str {
        match self {
            Self::Kept => "Files were not summed; `tollgate trace --by file` does that, if its backend can.",
            Self::Traced => "No call that was traced worked on a file, as far as this backend knows.",
            Self::GoesOn => "Files are summed over the whole time and shown at the end.",
        }
    }
}

impl View {
    /// Returns this view with every row.
    #[must_use]
    pub fn with_all_rows(self) -> Self {
        Self { top: usize::MAX, blocking: usize::MAX, ..self }
    }
}
