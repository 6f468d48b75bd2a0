//! The directory of kept runs, and how a run or the runs of a session are found by file, label, id or `last`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tollgate_model::text::plainly;
use tollgate_model::{Run, RunId};
use tollgate_os::paths::open_regular;

use crate::document::{EXTENSION, Head, OpenError, Outline, head_of, open, open_found};
use crate::fleet::layout::{DOCUMENTS, is_store};
use crate::kind::Kind;
use crate::meant::{Found, among, newest};

/// The name of the newest run.
pub const LAST: &str = "last";

/// The reason why a run is not found: a sentence.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The directory of runs cannot be read.
    #[error("{} cannot be read: {}", .0.display(), plainly(.1))]
    Unreadable(PathBuf, io::Error),
    /// `last`, and there is none.
    #[error("no run is kept yet; `tollgate run` makes one")]
    NoneKept,
    /// `last`, and no run of that kind is kept.
    #[error("no run of the kind {0} is kept; `tollgate runs` shows what is kept")]
    NoneOfKind(String),
    /// No name of a kept run.
    #[error("{0:?} is no kept run; `tollgate runs` shows what is kept")]
    NotKept(String),
    /// No name of a run.
    #[error(
        "no kept run has the label or id {0:?}, and there is no such file; `tollgate runs` shows what is kept"
    )]
    Unknown(String),
    /// A directory of stored runs without documents.
    #[error(
        "{} has no run documents in {DOCUMENTS}/: samples are only there, and without them nothing can be shown or compared",
        .0.display()
    )]
    NoDocuments(PathBuf),
    /// No name of a run in that directory.
    #[error("{} has no run with the label or id {:?}; `tollgate store list` shows what is stored", .0.display(), .1)]
    UnknownThere(PathBuf, String),
    /// The beginning of several ids.
    #[error(
        "{number} kept runs have an id that begins with {meant:?}, from {first} to {last}; say more of it"
    )]
    Several {
        /// The beginning.
        meant: String,
        /// How many runs have it.
        number: usize,
        /// The oldest.
        first: RunId,
        /// The newest.
        last: RunId,
    },
    /// The file is no run.
    #[error("{} {}", .0.display(), .1)]
    Unusable(PathBuf, OpenError),
}

/// The directory of kept runs by the XDG Base Directory specification, which ignores a relative XDG_DATA_HOME.
pub(crate) enum Home {
    Named(PathBuf),
    Usual(PathBuf),
    Unknown,
}

pub(crate) fn home() -> Home {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match (absolute("XDG_DATA_HOME"), absolute("HOME")) {
        (Some(data), _) => Home::Named(data.join("tollgate/runs")),
        (None, Some(home)) => Home::Usual(home.join(".local/share/tollgate/runs")),
        (None, None) => Home::Unknown,
    }
}

/// A run that is kept.
#[derive(Debug)]
pub struct Entry {
    /// From its file's name.
    pub id: RunId,
    /// Its file.
    pub path: PathBuf,
    pub(crate) written: SystemTime,
}

/// The kept runs, oldest first.
///
/// # Errors
/// When their directory exists and cannot be read.
pub fn kept() -> Result<Vec<Entry>, FindError> {
    let (Home::Named(directory) | Home::Usual(directory)) = home() else { return Ok(Vec::new()) };
    entries(&directory)
}

/// The run documents in a directory, oldest first; none where there is no such directory.
fn entries(directory: &Path) -> Result<Vec<Entry>, FindError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FindError::Unreadable(directory.to_owned(), error)),
    };
    let mut kept: Vec<Entry> = entries.filter_map(|entry| Entry::of(&entry.ok()?.path())).collect();
    kept.sort_by(|a, b| a.moment().cmp(&b.moment()));
    Ok(kept)
}

impl Entry {
    /// Other files are skipped, such as those that a killed program left half-written.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        if path.extension()? != EXTENSION {
            return None;
        }
        let id = path.file_stem()?.to_str()?.parse().ok()?;
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { id, path: path.to_owned(), written: metadata.modified().ok()? })
    }

    /// When it was kept: the second in which its file was written, by this machine's clock. Files of one second were perhaps copied
    /// together: of these the time that their ids begin with decides, and of ids of one second the files again.
    fn moment(&self) -> (u64, &str, SystemTime, &RunId) {
        let second = self.written.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let id = self.id.as_ref();
        let began = id.rsplit_once('-').map_or(id, |(began, _)| began);
        (second, began, self.written, &self.id)
    }

    /// Reads it.
    ///
    /// # Errors
    /// As [`open`], and where it is not the run that its file's name says.
    pub fn open(&self) -> Result<Run, OpenError> {
        let run = open_found(&self.path)?;
        if run.id == self.id { Ok(run) } else { Err(OpenError::AnotherRun(run.id)) }
    }

    /// Reads it without its samples.
    ///
    /// # Errors
    /// As [`Entry::open`].
    pub fn outline(&self) -> Result<Outline, OpenError> {
        let outline = Outline::open(&self.path)?;
        if outline.id == self.id { Ok(outline) } else { Err(OpenError::AnotherRun(outline.id)) }
    }

    /// Its label, without reading the rest.
    pub fn label(&self) -> Option<String> {
        self.head().label
    }

    /// The session that it is a part of, without reading the rest.
    pub fn session(&self) -> Option<RunId> {
        self.head().session.map(|part| part.id)
    }

    pub(crate) fn head(&self) -> Head {
        open_regular(&self.path).map_or_else(|_| Head::default(), head_of)
    }
}

/// The run that a user means: a file where it looks like one, else a kept run by `last`, id, label (the newest that has it) or the
/// beginning of an id, else a file after all. A directory of stored runs means the newest of them, `DIR:` before any of these one of
/// them. `last` is the newest run that was measured, which no trace is. Where a session is meant, its base.
///
/// # Errors
/// When there is none, when a beginning fits several, or when the document is not a run.
pub fn find(meant: &str) -> Result<Run, FindError> {
    find_of(meant, Kind::MEASURED)
}

/// The same where `last` is the newest kept run of these kinds.
///
/// # Errors
/// As [`find`].
pub fn find_of(meant: &str, kinds: &[Kind]) -> Result<Run, FindError> {
    locate(meant, kinds)?.open_first()
}

/// All runs that a user means: those of a session, the base first, or one run, as [`find_of`] has it. A session is meant by its id, the
/// beginning of it, and a label or `last` that means one of its runs. The id of one of its runs means that run alone.
///
/// # Errors
/// As [`find`].
pub fn find_runs(meant: &str, kinds: &[Kind]) -> Result<Vec<Run>, FindError> {
    locate(meant, kinds)?.open_all()
}

/// The newest kept run that has a figure of a benchmark, with the others of its session; None where no kept run has one.
///
/// # Errors
/// When the directory of kept runs cannot be read, or a document is not a run.
pub fn find_newest_of(benchmark: &str) -> Result<Option<Vec<Run>>, FindError> {
    let has_figure = |entry: &Entry| entry.outline().is_ok_and(|outline| outline.measured(benchmark));
    newest(kept()?, has_figure).map(|found| Located::Kept(found).open_all()).transpose()
}

/// The runs of the session that is meant, the base first; None where a run of none is meant, or one run of it.
///
/// # Errors
/// As [`find`].
pub fn find_session(meant: &str) -> Result<Option<Vec<Run>>, FindError> {
    let located = locate(meant, Kind::MEASURED)?;
    match &located {
        Located::Kept(Found::Session(..)) => located.open_all().map(Some),
        _ => Ok(None),
    }
}

/// The file of a run.
enum Located {
    /// In a file, which may be called anything.
    File(PathBuf),
    /// Among runs whose files have their ids as names.
    Kept(Found),
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
            Self::Kept(Found::Session(first, others)) => {
                std::iter::once(&first).chain(&others).map(opened).collect()
            }
            one => Ok(vec![one.open_first()?]),
        }
    }
}

fn opened(entry: &Entry) -> Result<Run, FindError> {
    entry.open().map_err(|why| FindError::Unusable(entry.path.clone(), why))
}

fn locate(meant: &str, kinds: &[Kind]) -> Result<Located, FindError> {
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

/// The directory of stored runs that is meant, and which of them. What has no `/` and no `:` may be a label.
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
    let found = among(entries, meant, Kind::ALL)?.map(Located::Kept);
    found.ok_or_else(|| FindError::UnknownThere(directory.to_owned(), meant.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_runs_are_entries() {
        let directory = tempfile::tempdir().expect("a directory");
        let entry = |name: &str| {
            let path = directory.path().join(name);
            fs::write(&path, "{}").expect("written");
            Entry::of(&path).is_some()
        };
        assert!(entry("20261121-015427-3f2a.json"));
        assert!(!entry(".20261121-015427-3f2a.json.00c0ffee.tmp"));
        assert!(!entry("notes.txt"));
        assert!(!entry(".hidden.json"));
        fs::create_dir(directory.path().join("directory.json")).expect("made");
        assert!(Entry::of(&directory.path().join("directory.json")).is_none());
    }
}
