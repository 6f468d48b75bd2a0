//! The names of the files of a run in a directory that many machines share.

use std::path::Path;

use tollgate_model::Run;
use tollgate_model::run::ReadError;
use tollgate_model::text::excerpt;
use tollgate_view::export::facts;
use tollgate_view::export::row::{self, SCHEMA};
use tollgate_view::export::time::{Date, Moment};

/// The directory with the facts.
pub(crate) const ENVIRONMENTS: &str = "env";
/// The directory with the run documents.
pub(crate) const DOCUMENTS: &str = "runs";

/// The directory with the lines of this schema.
pub(crate) fn rows_directory() -> String {
    format!("schema={SCHEMA}")
}

/// Whether this is a directory of stored runs.
pub(crate) fn is_store(directory: &Path) -> bool {
    [rows_directory().as_str(), DOCUMENTS].iter().any(|part| directory.join(part).is_dir())
}

/// A file of the directory.
pub struct File {
    /// Beneath the directory's root.
    pub path: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// The files of a run, in the order of writing: a reader of the lines finds the other two.
pub struct Files {
    /// The facts.
    pub facts: File,
    /// The run itself.
    pub document: File,
    /// The lines.
    pub rows: File,
}

/// The reason why a run cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// It has no day.
    #[error("started at {:?}, which is no time such as 2026-11-21T01:54:27Z", excerpt(.started))]
    NoDay {
        /// Its text.
        started: String,
    },
    /// It cannot be written as a document.
    #[error(transparent)]
    Document(#[from] ReadError),
    /// It cannot be written as lines.
    #[error("cannot be written as JSON: {0}")]
    Rows(#[from] serde_json::Error),
}

/// The files of a run.
///
/// # Errors
/// When it has no day, or contradicts itself.
pub fn files(run: &Run) -> Result<Files, LayoutError> {
    let date = day(&run.started).ok_or_else(|| LayoutError::NoDay { started: run.started.clone() })?;
    let (env_id, facts) = facts::file(&run.facts)?;
    let id = &run.id;
    Ok(Files {
        facts: File { path: format!("{ENVIRONMENTS}/{env_id}.json"), bytes: facts },
        document: File { path: format!("{DOCUMENTS}/{id}.json"), bytes: run.to_json()? },
        rows: File {
            path: format!("{}/date={date}/{id}.ndjson", rows_directory()),
            bytes: row::ndjson(run)?.into_bytes(),
        },
    })
}

/// The day of a moment in a run document.
fn day(started: &str) -> Option<Date> {
    started.parse().ok().map(|moment: Moment| moment.date())
}
