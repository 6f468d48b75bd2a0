//! `tollgate store`: a directory of stored runs, in the layout that [`tollgate_view::export::layout`] has.
//!
//! - [`write()`]: how a run comes into it, for `run --store` and `store add`.
//! - `tree`: reading it without following links.
//! - `contents`: its files, by the layout.
//! - `list`, `check`, `prune`: the other verbs.

mod check;
mod contents;
mod list;
mod prune;
mod tree;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use tollgate_model::Run;
use tollgate_model::run::{MAX_BYTES, ReadError};
use tollgate_os::paths::Directory;
use tollgate_view::export::layout::{self, File};

use crate::args::{StoreAddArgs, StoreArgs, StoreVerb};
use crate::failure::{Failure, plainly};
use crate::writing::{self, Existing, Until};
use crate::{figures, out, store};

/// Does what was asked with a directory of stored runs.
///
/// # Errors
/// A directory that is no store; the condition of --fail-on.
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
        write(&args.dir, run).map_err(|failure| match failure {
            // The originals stay.
            Failure::NotKept(sentence) => Failure::Input(sentence),
            other => other,
        })?;
    }
    let number = figures::count(runs.len(), "run is", "runs are");
    out::print(&format!("{number} stored in {}.\n", args.dir.display()))
}

/// Makes the directory, and tries out whether something can be written there.
///
/// # Errors
/// When nothing can.
pub fn prepare(directory: &Path) -> Result<(), Failure> {
    let store = open(directory)?;
    for part in [layout::rows_directory(), layout::ENVIRONMENTS.to_owned(), layout::DOCUMENTS.to_owned()] {
        let made = store.below(Path::new(&part), ALL_MAY_READ).map_err(io::Error::from);
        made.and_then(|made| writing::try_out(&made)).map_err(|error| {
            let part = directory.join(&part);
            Failure::input(format!("runs cannot be stored in {}: {}", part.display(), plainly(&error)))
        })?;
    }
    Ok(())
}

/// The mode of a store's directories, less the umask.
const ALL_MAY_READ: Mode = Mode::from_raw_mode(0o777);

/// The store's own directory, which is made where it is missing. A link of another user does not lead to it, and none is followed
/// inside.
fn open(directory: &Path) -> Result<Directory, Failure> {
    Directory::create(directory, ALL_MAY_READ).map_err(|error| {
        let why = plainly(&io::Error::from(error));
        Failure::input(format!("runs cannot be stored in {}: {why}", directory.display()))
    })
}

/// Stores a run: its facts, its document, and last its lines. The document's path.
///
/// # Errors
/// When it cannot be; then neither its document nor its lines are there.
pub fn write(directory: &Path, run: &Run) -> Result<PathBuf, Failure> {
    let fault =
        |why: String| Failure::NotKept(format!("the run was not kept: {}: {why}", directory.display()));
    let files = layout::files(run).map_err(|error| fault(format!("the run {error}")))?;
    if files.document.bytes.len() as u64 > MAX_BYTES {
        return Err(fault(format!("it {}", ReadError::TooLarge)));
    }
    let store = open(directory)?;
    let put = |file: &File, existing| {
        let (path, name) = named(&file.path);
        let put = || -> io::Result<Directory> {
            let inner = store.below(path, ALL_MAY_READ)?;
            writing::write_in(&inner, name, &file.bytes, existing, Until::Durable, writing::SHARED)?;
            Ok(inner)
        };
        put().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => fault(format!("{} is there already", file.path)),
            _ => fault(format!("{}: {}", file.path, plainly(&error))),
        })
    };
    // Written anew where it is there: the same bytes, and young enough not to be pruned before the lines are there.
    put(&files.facts, Existing::Replace)?;
    let documents = put(&files.document, Existing::Keep)?;
    if let Err(failure) = put(&files.rows, Existing::Keep) {
        let _ = rustix::fs::unlinkat(&documents, named(&files.document.path).1, AtFlags::empty());
        return Err(failure);
    }
    Ok(directory.join(&files.document.path))
}

/// A file of the layout: its directory below the store's, and its name.
fn named(path: &str) -> (&Path, &OsStr) {
    let path = Path::new(path);
    (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default())
}

/// Whether this is a directory of stored runs.
pub fn is_store(directory: &Path) -> bool {
    [layout::rows_directory().as_str(), layout::DOCUMENTS].iter().any(|part| directory.join(part).is_dir())
}
