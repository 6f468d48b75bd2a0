//! Finds a run or the runs of a session by file, label, id or `last`.

use std::path::{Path, PathBuf};

use tollgate_model::{Case, Run};

use crate::document::{EXTENSION, open};
use crate::fleet::layout::{DOCUMENTS, is_store};
use crate::kept::{Entry, FindError, LAST, entries, kept};
use crate::kind::RunKind;
use crate::meant::{Meaning, among, newest};

/// Finds the run that a user means: a file if it looks like one, else a kept run by `last`, id, label (the newest with it) or the
/// beginning of an id, else a file after all. A directory of stored runs means its newest run, and `DIR:` with one of these names a
/// run in it. `last` is the newest run that was measured here, not a trace or a run of the lab. A session stands for its base.
///
/// # Errors
/// If there is none, if a beginning fits several, or if the document is not a run.
pub fn find(meant: &str) -> Result<Run, FindError> {
    find_of(meant, RunKind::MEASURED)
}

/// Like [`find`], but `last` is the newest kept run of these kinds.
///
/// # Errors
/// See [`find`].
pub fn find_of(meant: &str, kinds: &[RunKind]) -> Result<Run, FindError> {
    locate(meant, kinds)?.open_first()
}

/// Finds all runs that a user means: those of a session, the base first, or one run, as in [`find_of`]. A session is meant by its
/// id, the beginning of it, and a label or `last` that means one of its runs. The id of one of its runs means only that run.
///
/// # Errors
/// See [`find`].
pub fn find_runs(meant: &str, kinds: &[RunKind]) -> Result<Vec<Run>, FindError> {
    locate(meant, kinds)?.open_all()
}

/// Finds the newest kept run with a figure of a requested row, else the newest that says why it has none, together with its session.
/// If no kept run has such a row, any row of the benchmark counts. `None` if no kept run has the benchmark.
///
/// # Errors
/// If the directory of kept runs cannot be read, or a document is not a run.
pub fn find_newest_of(
    benchmark: &str,
    is_meant: impl Fn(&Case) -> bool,
) -> Result<Option<Vec<Run>>, FindError> {
    for (of_any_row, with_figure) in [(false, true), (false, false), (true, true), (true, false)] {
        let is_row = |case: &Case| case.benchmark == benchmark && (of_any_row || is_meant(case));
        let has = |entry: &Entry| {
            entry.outline().is_ok_and(|outline| outline.has(benchmark, with_figure))
                && entry.open().is_ok_and(|run| {
                    let mut rows = run.measurements.iter().filter(|row| is_row(&row.case));
                    rows.any(|row| !with_figure || row.outcome.measured().is_some())
                })
        };
        if let Some(found) = newest(kept()?, has) {
            return Located::Kept(found).open_all().map(Some);
        }
    }
    Ok(None)
}

/// Finds the newest kept session with a figure of a benchmark. Its base comes first. `None` if there is none.
///
/// # Errors
/// If the directory of kept runs cannot be read, or a document is not a run.
pub fn find_newest_session_of(benchmark: &str) -> Result<Option<Vec<Run>>, FindError> {
    let has_figure = |entry: &Entry| {
        entry.head().session.is_some() && entry.outline().is_ok_and(|outline| outline.has(benchmark, true))
    };
    newest(kept()?, has_figure).map(|found| Located::Kept(found).open_all()).transpose()
}

/// Finds the runs of the meant session, the base first. `None` if a single run is meant.
///
/// # Errors
/// See [`find`].
pub fn find_session(meant: &str) -> Result<Option<Vec<Run>>, FindError> {
    let located = locate(meant, RunKind::MEASURED)?;
    match &located {
        Located::Kept(Meaning::Session(..)) => located.open_all().map(Some),
        _ => Ok(None),
    }
}

/// Like [`find_session`] among the user's own kept runs. No other user can have written them, so programs that they name may be executed.
///
/// # Errors
/// If their directory cannot be read, or a document is not a run.
pub fn find_kept_session(meant: &str) -> Result<Option<Vec<Run>>, FindError> {
    match among(kept()?, meant, RunKind::MEASURED)? {
        Some(session @ Meaning::Session(..)) => Located::Kept(session).open_all().map(Some),
        _ => Ok(None),
    }
}

enum Located {
    /// A file of any name.
    File(PathBuf),
    /// Runs whose files are named by their ids.
    Kept(Meaning),
}

impl Located {
    fn open_first(self) -> Result<Run, FindError> {
        match self {
            Self::File(path) => open(&path).map_err(|why| FindError::Unusable(path, why)),
            Self::Kept(found) => opened(found.first()),
        }
    }

    fn open_all(self) -> Result<Vec<Run>, FindError> {
        match self {
            Self::Kept(Meaning::Session(first, others)) => {
                std::iter::once(&first).chain(&others).map(opened).collect()
            }
            one => Ok(vec![one.open_first()?]),
        }
    }
}

fn opened(entry: &Entry) -> Result<Run, FindError> {
    entry.open().map_err(|why| FindError::Unusable(entry.path.clone(), why))
}

fn locate(meant: &str, kinds: &[RunKind]) -> Result<Located, FindError> {
    let file = PathBuf::from(meant);
    let is_called_so = || file.extension().is_some_and(|extension| extension == EXTENSION) && file.is_file();
    if let Some((directory, run)) = in_store(meant) {
        return locate_stored(directory, run);
    }
    if meant.contains('/') || is_called_so() {
        return Ok(Located::File(file));
    }
    let entries = kept()?;
    let is_any_kept = !entries.is_empty();
    if let Some(found) = among(entries, meant, kinds)? {
        return Ok(Located::Kept(found));
    }
    match meant {
        _ if is_store(&file) => locate_stored(&file, LAST),
        LAST if is_any_kept => {
            let names: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            Err(FindError::NoneOfKind(names.join(" or ")))
        }
        LAST => Err(FindError::NoneKept),
        _ if file.exists() => Ok(Located::File(file)),
        _ => Err(FindError::Unknown(meant.to_owned())),
    }
}

/// The directory of stored runs and the name within it. A name without `/` and `:` may be a label.
fn in_store(meant: &str) -> Option<(&Path, &str)> {
    let whole = Path::new(meant);
    if meant.contains('/') && is_store(whole) {
        return Some((whole, LAST));
    }
    let (directory, run) = meant.rsplit_once(':')?;
    let directory = Path::new(directory);
    (!whole.exists() && is_store(directory)).then_some((directory, run))
}

fn locate_stored(directory: &Path, meant: &str) -> Result<Located, FindError> {
    let entries = entries(&directory.join(DOCUMENTS))?;
    if entries.is_empty() {
        return Err(FindError::NoDocuments(directory.to_owned()));
    }
    let found = among(entries, meant, RunKind::ALL)?.map(Located::Kept);
    found.ok_or_else(|| FindError::UnknownThere(directory.to_owned(), meant.to_owned()))
}
