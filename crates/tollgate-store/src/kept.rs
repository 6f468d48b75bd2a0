//! The directory of kept runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tollgate_model::text::plainly;
use tollgate_model::{Run, RunId};
use tollgate_os::paths::open_regular;

use crate::document::{EXTENSION, Head, OpenError, Outline, head_of, open_found};
use crate::fleet::layout::DOCUMENTS;

/// The name that means the newest run.
pub const LAST: &str = "last";

/// Why a run was not found: a sentence.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The directory of runs cannot be read.
    #[error("{} cannot be read: {}", .0.display(), plainly(.1))]
    Unreadable(PathBuf, io::Error),
    /// `last` was meant, and no run is kept.
    #[error("no run is kept yet; `tollgate run` makes one")]
    NoneKept,
    /// `last` was meant, and no run of that kind is kept.
    #[error("no run of the kind {0} is kept; `tollgate runs` shows what is kept")]
    NoneOfKind(String),
    /// No kept run has this name.
    #[error("{0:?} is not a kept run; `tollgate runs` shows what is kept")]
    NotKept(String),
    /// No run has this name.
    #[error(
        "no kept run has the label or id {0:?}, and there is no such file; `tollgate runs` shows what is kept"
    )]
    Unknown(String),
    /// A directory of stored runs lacks documents.
    #[error(
        "{} has no run documents in {DOCUMENTS}/; without their samples nothing can be shown or compared",
        .0.display()
    )]
    NoDocuments(PathBuf),
    /// No run in that directory has this name.
    #[error("{} has no run with the label or id {:?}; `tollgate store list` shows what is stored", .0.display(), .1)]
    UnknownThere(PathBuf, String),
    /// Several ids begin like this.
    #[error(
        "{number} kept runs have an id that begins with {meant:?}, from {first} to {last}; give more of the id"
    )]
    Several {
        /// The beginning.
        meant: String,
        /// The number of runs with it.
        number: usize,
        /// The oldest.
        first: RunId,
        /// The newest.
        last: RunId,
    },
    /// The file is not a run.
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

/// A kept run.
#[derive(Debug)]
pub struct Entry {
    /// The id in its file's name.
    pub id: RunId,
    /// Its file.
    pub path: PathBuf,
    pub(crate) written: SystemTime,
}

/// Returns the kept runs, oldest first.
///
/// # Errors
/// If their directory exists and cannot be read.
pub fn kept() -> Result<Vec<Entry>, FindError> {
    let (Home::Named(directory) | Home::Usual(directory)) = home() else { return Ok(Vec::new()) };
    entries(&directory)
}

/// The run documents in a directory, oldest first; empty if the directory does not exist.
pub(crate) fn entries(directory: &Path) -> Result<Vec<Entry>, FindError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FindError::Unreadable(directory.to_owned(), error)),
    };
    let mut kept: Vec<Entry> = entries.filter_map(|entry| Entry::read(&entry.ok()?.path())).collect();
    kept.sort_by(|a, b| a.moment().cmp(&b.moment()));
    Ok(kept)
}

impl Entry {
    /// Skips other files, such as those that a killed program left half-written.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        if path.extension()? != EXTENSION {
            return None;
        }
        let id = path.file_stem()?.to_str()?.parse().ok()?;
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { id, path: path.to_owned(), written: metadata.modified().ok()? })
    }

    /// When the run was kept: the second in which its file was written, by this machine's clock. Files of one second were perhaps
    /// copied together. The time in their ids orders these, and the exact time of the files orders ids of one second.
    fn moment(&self) -> (u64, &str, SystemTime, &RunId) {
        let second = self.written.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let id = self.id.as_ref();
        let began = id.rsplit_once('-').map_or(id, |(began, _)| began);
        (second, began, self.written, &self.id)
    }

    /// Reads the run.
    ///
    /// # Errors
    /// Those of [`open`](crate::document::open), and if the file is named after another run.
    pub fn open(&self) -> Result<Run, OpenError> {
        let run = open_found(&self.path)?;
        if run.id == self.id { Ok(run) } else { Err(OpenError::AnotherRun(run.id)) }
    }

    /// Reads the run without its samples.
    ///
    /// # Errors
    /// See [`Entry::open`].
    pub fn outline(&self) -> Result<Outline, OpenError> {
        let outline = Outline::open(&self.path)?;
        if outline.id == self.id { Ok(outline) } else { Err(OpenError::AnotherRun(outline.id)) }
    }

    /// Returns the label without reading the rest.
    pub fn label(&self) -> Option<String> {
        self.head().label
    }

    /// Returns the session that it is a part of, without reading the rest.
    pub fn session(&self) -> Option<RunId> {
        self.head().session.map(|part| part.id)
    }

    pub(crate) fn head(&self) -> Head {
        open_regular(&self.path).map_or_else(|_| Head::default(), head_of)
    }
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
            Entry::read(&path).is_some()
        };
        assert!(entry("20261121-015427-3f2a.json"));
        assert!(!entry(".20261121-015427-3f2a.json.00c0ffee.tmp"));
        assert!(!entry("notes.txt"));
        assert!(!entry(".hidden.json"));
        fs::create_dir(directory.path().join("directory.json")).expect("made");
        assert!(Entry::read(&directory.path().join("directory.json")).is_none());
    }
}
