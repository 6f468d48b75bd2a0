//! A directory of stored runs, which many machines share or synchronize:
//!
//! ```text
//! schema=2/date=2026-11-21/20261121-015427-3f2a91c4.ndjson   the long form
//! env/8d0c…e1.json                                           the facts, once for all equal machines
//! runs/20261121-015427-3f2a91c4.json                         the run itself, with its samples
//! ```
//!
//! A machine only adds files, under names that no other machine uses, and facts are named by their content. So it needs neither
//! lock nor server, and copying two stores into one merges them.

mod contents;
pub mod layout;
mod list;
mod tree;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use tollgate_model::Run;
use tollgate_model::run::{MAX_BYTES, ReadError};
use tollgate_model::text::plainly;
use tollgate_os::paths::Directory;

use crate::document::KeepError;
use crate::writing::{self, Existing, Until};
use layout::File;

pub use contents::ContentsError;
pub use list::{Listed, StoredRun, list};

/// Runs cannot be stored in this directory.
#[derive(Debug, thiserror::Error)]
#[error("runs cannot be stored in {}: {}", directory.display(), plainly(error))]
pub struct PrepareError {
    directory: PathBuf,
    error: io::Error,
}

/// Makes the directory, and checks that it can be written.
///
/// # Errors
/// If it cannot.
pub fn prepare(directory: &Path) -> Result<(), PrepareError> {
    let store = open(directory)?;
    for part in [layout::rows_directory().as_str(), layout::ENVIRONMENTS, layout::DOCUMENTS] {
        let made = store.below(Path::new(part), ALL_MAY_READ).map_err(io::Error::from);
        made.and_then(|made| writing::try_out(&made))
            .map_err(|error| PrepareError { directory: directory.join(part), error })?;
    }
    Ok(())
}

const ALL_MAY_READ: Mode = Mode::from_raw_mode(0o777);

/// Opens the store's own directory, or makes it. Another user's link to it is not followed, nor any link inside.
fn open(directory: &Path) -> Result<Directory, PrepareError> {
    Directory::create(directory, ALL_MAY_READ)
        .map_err(|error| PrepareError { directory: directory.to_owned(), error: error.into() })
}

/// Stores a run: its facts, its document, and last its lines. Returns the path of the document.
///
/// # Errors
/// If it cannot be stored; then neither its document nor its lines are there.
pub fn write(directory: &Path, run: &Run) -> Result<PathBuf, KeepError> {
    let fault = |why: String| KeepError { path: directory.to_owned(), why };
    let files = layout::files(run).map_err(|error| fault(format!("the run {error}")))?;
    if files.document.bytes.len() as u64 > MAX_BYTES {
        return Err(fault(format!("it {}", ReadError::TooLarge)));
    }
    let store = open(directory).map_err(|refused| fault(plainly(&refused.error)))?;
    let put = |file: &File, existing| {
        let (path, name) = named(&file.path);
        let put = || -> io::Result<Directory> {
            let inner = store.below(path, ALL_MAY_READ)?;
            writing::write_in(&inner, name, &file.bytes, existing, Until::Durable, writing::SHARED)?;
            Ok(inner)
        };
        put().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => fault(format!("{} already exists", file.path)),
            _ => fault(format!("{}: {}", file.path, plainly(&error))),
        })
    };
    // The facts are rewritten even if they exist, so that they are as young as the lines: removing old files takes both or neither.
    put(&files.facts, Existing::Replace)?;
    let documents = put(&files.document, Existing::Keep)?;
    if let Err(failure) = put(&files.rows, Existing::Keep) {
        let _ = rustix::fs::unlinkat(&documents, named(&files.document.path).1, AtFlags::empty());
        return Err(failure);
    }
    Ok(directory.join(&files.document.path))
}

/// Splits the path of a file in the layout into its directory, relative to the store, and its name.
fn named(path: &str) -> (&Path, &OsStr) {
    let path = Path::new(path);
    (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default())
}
