//! The names of a run's files in a directory that many machines share.

use std::path::Path;

use tollgate_model::Run;
use tollgate_model::run::ReadError;
use tollgate_model::text::excerpt;
use tollgate_view::export::facts;
use tollgate_view::export::row::{self, SCHEMA};
use tollgate_view::export::time::{Date, Moment};

pub(crate) const ENVIRONMENTS: &str = "env";
pub(crate) const DOCUMENTS: &str = "runs";

pub(crate) fn rows_directory() -> String {
    format!("schema={SCHEMA}")
}

pub(crate) fn is_store(directory: &Path) -> bool {
    [rows_directory().as_str(), DOCUMENTS].iter().any(|part| directory.join(part).is_dir())
}

/// A file of the directory.
pub struct File {
    /// Relative to the directory.
    pub path: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// The files of a run, in the order of writing: a reader who finds the lines finds the other two.
pub struct Files {
    /// The facts, as JSON.
    pub facts: File,
    /// The run document.
    pub document: File,
    /// The lines of the long form.
    pub rows: File,
}

/// Why a run cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// Its start is not a time.
    #[error("started at {:?}, which is not a time such as 2026-11-21T01:54:27Z", excerpt(.started))]
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

/// Returns the files of a run.
///
/// # Errors
/// If it has no day, or contradicts itself.
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

fn day(started: &str) -> Option<Date> {
    started.parse().ok().map(|moment: Moment| moment.date())
}
