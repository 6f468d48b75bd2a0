//! Documents of revisions that are printed in place of a comparison, as JSON.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

/// Revisions that execute equal files, so that nothing was measured.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SameFile<'a> {
    /// `same file`.
    pub verdict: &'static str,
    /// The revisions, as they were given.
    pub revisions: Vec<&'a str>,
    /// The files, by their paths in a build.
    pub files: BTreeSet<PathBuf>,
}

/// The commit that changed a command.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bisected<'a> {
    /// The name of the first bad commit.
    pub first_bad: &'a str,
    /// The first line of its message.
    pub subject: &'a str,
    /// Whether it is that one for certain; otherwise it may be one that was skipped.
    pub is_exact: bool,
    /// The case that commits were judged by: `versus/instructions`, `versus/user-instructions` or `versus/real`.
    pub by: &'static str,
    /// Its figure: a count, or a ratio to the time of the good end. None if an earlier search judged it.
    pub figure: Option<f64>,
    /// The commits before it.
    pub before: Vec<CommitFigure<'a>>,
    /// The commits in the order in which they were judged.
    pub steps: Vec<BisectStep<'a>>,
}

/// A commit with its figure.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommitFigure<'a> {
    /// Its name.
    pub commit: &'a str,
    /// Its figure, or None if it has none.
    pub figure: Option<f64>,
}

/// A commit that was judged.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BisectStep<'a> {
    /// `good`, `bad` or `skip`, as in git-bisect(1).
    pub verdict: &'static str,
    /// The commit.
    #[serde(flatten)]
    pub judged: CommitFigure<'a>,
}
