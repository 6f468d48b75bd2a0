//! `tollgate store`: a directory of stored runs, in the layout that [`tollgate_report::export::layout`] has.
//!
//! - [`write()`]: how a run comes into it, for `run --store` and `store add`.
//! - `tree`: looking into it without following links.
//! - `contents`: what is in it, by the layout.
//! - `list`, `check`, `prune`: the other verbs.

mod check;
mod contents;
mod list;
mod prune;
mod tree;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tollgate_model::Run;
use tollgate_model::run::{MAX_BYTES, ReadError};
use tollgate_report::export::layout::{self, File};

use crate::args::{StoreAddArgs, StoreArgs, StoreVerb};
use crate::failure::{Failure, plainly};
use crate::writing::{self, Existing};
use crate::{figures, out, store};

/// Does what was asked with a directory of stored runs.
///
/// # Errors
/// A directory that is none; what was to fail.
pub fn store(args: &StoreArgs) -> Result<(), Failure> {
    match &args.verb {
        StoreVerb::List(args) => list::list(args),
        StoreVerb::Check(args) => check::check(args),
        StoreVerb::Prune(args) => prune::prune(args),
        StoreVerb::Add(args) => add(args),
    }
}

/// Stores runs that were made before; all are read before the first is stored.
fn add(args: &StoreAddArgs) -> Result<(), Failure> {
    let runs = args.run.iter().map(|meant| store::find(meant)).collect::<Result<Vec<Run>, Failure>>()?;
    prepare(&args.dir)?;
    for run in &runs {
        write(&args.dir, run)?;
    }
    let number = figures::count(runs.len(), "run is", "runs are");
    out::print(&format!("{number} stored in {}.\n", args.dir.display()))
}

/// Makes the directory, and tries out whether something can be written there.
///
/// # Errors
/// When nothing can.
pub fn prepare(directory: &Path) -> Result<(), Failure> {
    for part in [layout::rows_directory(), layout::ENVIRONMENTS.to_owned(), layout::DOCUMENTS.to_owned()] {
        let part = directory.join(part);
        fs::create_dir_all(&part).and_then(|()| writing::try_out(&part)).map_err(|error| {
            Failure::input(format!("runs cannot be stored in {}: {}", part.display(), plainly(&error)))
        })?;
    }
    Ok(())
}

/// Stores a run: its facts, its document, and last its lines. The document's path.
///
/// # Errors
/// When it cannot be; then neither its document nor its lines are there.
pub fn write(directory: &Path, run: &Run) -> Result<PathBuf, Failure> {
    let fault = |why: String| Failure::input(format!("the run was not kept: {}: {why}", directory.display()));
    let files = layout::files(run).map_err(|error| fault(format!("the run {error}")))?;
    if files.document.bytes.len() as u64 > MAX_BYTES {
        return Err(fault(format!("it {}", ReadError::TooLarge)));
    }
    let put = |file: &File, existing| {
        let path = directory.join(&file.path);
        fs::create_dir_all(writing::parent(&path))
            .and_then(|()| writing::write_whole(&path, &file.bytes, existing))
            .map(|()| path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => fault(format!("{} is there already", file.path)),
                _ => fault(format!("{}: {}", file.path, plainly(&error))),
            })
    };
    // Written anew where it is there: the same bytes, and young enough not to be pruned before the lines are there.
    put(&files.environment, Existing::Replace)?;
    let document = put(&files.document, Existing::Keep)?;
    if let Err(failure) = put(&files.rows, Existing::Keep) {
        let _ = fs::remove_file(&document);
        return Err(failure);
    }
    Ok(document)
}

/// Whether this is a directory of stored runs.
pub fn is_store(directory: &Path) -> bool {
    [layout::rows_directory().as_str(), layout::DOCUMENTS].iter().any(|part| directory.join(part).is_dir())
}
