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
    /// The execution that is shown.
    pub stage: Stage,
}

/// When an execution is shown, which says why sums are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It was kept: the sums may not have been asked for.
    Kept,
    /// It has just been traced, with the sums that are shown.
    Traced,
    /// It goes on, and a part of it is shown.
    GoesOn,
}

impl Stage {
    /// Why there is no process.
    pub(super) fn without_processes(self) -> &'static str {
        match self {
            Self::Kept => {
                "Its processes were not added up: `tollgate trace --by process` or `--tree` does that, where its backend can."
            }
            Self::Traced => "Its processes are not known to this backend.",
            Self::GoesOn => "Processes are added up over the whole time, and shown at the end.",
        }
    }

    /// Why there is no file.
    pub(super) fn without_files(self) -> &'static str {
        match self {
            Self::Kept => {
                "No files were added up: `tollgate trace --by file` does that, where its backend can."
            }
            Self::Traced => "No call that was traced worked on a file, as far as this backend knows.",
            Self::GoesOn => "Files are added up over the whole time, and shown at the end.",
        }
    }
}

impl View {
    /// The same with every row.
    #[must_use]
    pub fn with_all_rows(self) -> Self {
        Self { top: usize::MAX, blocking: usize::MAX, ..self }
    }
}
