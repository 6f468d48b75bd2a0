//! The destination of a new run. It is chosen before the run is made, so that a minute of measuring is not lost.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};
use tollgate_model::run::{MAX_BYTES, NameError, ReadError};
use tollgate_model::text::plainly;
use tollgate_model::{Run, RunId};
use tollgate_os::paths::Directory;
use tollgate_os::users;

use crate::document::{EXTENSION, KeepError};
use crate::fleet;
use crate::kept::{Home, home};
use crate::writing::{self, Existing, Until};

/// The destination of a run.
#[derive(Debug)]
pub enum Destination {
    /// The file that the user named.
    File(PathBuf),
    /// The directory of kept runs.
    Kept(Directory),
    /// A directory of stored runs that the user named.
    Stored(PathBuf),
    /// A directory that the user named for the runs of a session, with a file for each.
    Directory(Directory),
    /// Nowhere, for this reason (a sentence). The user named no file, so the run is still shown.
    Nowhere(String),
}

/// The directory of kept runs that XDG_DATA_HOME names cannot be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "runs cannot be kept in {} (XDG_DATA_HOME): {}; name a file with --out FILE",
    directory.display(),
    plainly(error)
)]
pub struct HomeError {
    directory: PathBuf,
    error: io::Error,
}

/// The system's clock is before 1970 or after 9999.
#[derive(Debug, thiserror::Error)]
#[error("the system clock is not usable: {0}")]
pub struct NoTime(NameError);

impl Destination {
    /// Takes a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn file(path: &Path) -> Result<Self, writing::Refusal> {
        writing::check(path)?;
        Ok(Self::File(path.to_owned()))
    }

    /// Takes the directory of kept runs.
    ///
    /// # Errors
    /// If the user named it and it cannot be written to.
    pub fn usual() -> Result<Self, HomeError> {
        let (directory, is_named) = match home() {
            Home::Named(directory) => (directory, true),
            Home::Usual(directory) => (directory, false),
            Home::Unknown => return Ok(Self::Nowhere("neither XDG_DATA_HOME nor HOME is set".to_owned())),
        };
        if let Some(owner) = owner_of_another(&directory) {
            let (directory, owner) = (directory.display(), users::describe(owner));
            return Ok(Self::Nowhere(format!(
                "{directory} is in a directory of {owner}, where root keeps no runs"
            )));
        }
        match prepare(&directory) {
            Ok(kept) => Ok(Self::Kept(kept)),
            Err(error) if is_named => Err(HomeError { directory, error }),
            Err(error) => {
                let (directory, why) = (directory.display(), plainly(&error));
                Ok(Self::Nowhere(format!("runs cannot be kept in {directory}: {why}")))
            }
        }
    }

    /// Takes a directory of stored runs.
    ///
    /// # Errors
    /// If it cannot be written to.
    pub fn stored(directory: &Path) -> Result<Self, fleet::PrepareError> {
        fleet::prepare(directory)?;
        Ok(Self::Stored(directory.to_owned()))
    }

    /// Takes a directory for the runs of a session, and makes it if it is missing. The file of each run is named after its place
    /// and its kind of environment, such as `1-host.json` and `2-container.json`, and replaces a file of that name.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn directory(path: &Path) -> io::Result<Self> {
        let directory = Directory::create(path, Mode::from_raw_mode(0o777))?;
        writing::try_out(&directory)?;
        Ok(Self::Directory(directory))
    }

    /// Keeps a run and returns its path, if any. A run that is soon repeated need not wait for the disk; see [`writing::write_soon`].
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is left.
    pub fn keep(&self, run: &Run, until: Until) -> Result<Option<PathBuf>, KeepError> {
        let path = match self {
            Self::Nowhere(_) => return Ok(None),
            Self::Stored(directory) => return fleet::write(directory, run).map(Some),
            Self::File(file) => file.clone(),
            Self::Kept(directory) => directory.path().join(format!("{}.{EXTENSION}", run.id)),
            Self::Directory(directory) => directory.path().join(format!("{}.{EXTENSION}", in_session(run))),
        };
        let fault = |why: String| KeepError { path: path.clone(), why };
        let document = run.to_json().map_err(|error| fault(error.to_string()))?;
        if document.len() as u64 > MAX_BYTES {
            return Err(fault(format!("it {}", ReadError::TooLarge)));
        }
        let written = match (self, path.file_name(), until) {
            (Self::Kept(directory), Some(name), _) => {
                writing::write_in(directory, name, &document, Existing::Keep, until, writing::PRIVATE)
            }
            (Self::Directory(directory), Some(name), _) => {
                writing::write_in(directory, name, &document, Existing::Replace, until, writing::SHARED)
            }
            (_, _, Until::Durable) => writing::write_whole(&path, &document, Existing::Replace),
            (_, _, Until::Written) => {
                writing::write_soon(&path, Existing::Replace, |file| file.write_all(&document))
            }
        };
        written.map_err(|error| fault(plainly(&error)))?;
        Ok(Some(path))
    }
}

/// The file's name for a run of a session: its place, from 1, and its kind or the user's name for it; otherwise the run's id.
fn in_session(run: &Run) -> String {
    let Some(part) = &run.session else { return run.id.to_string() };
    let is_of_name = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let kind: String = part.environment.chars().take_while(is_of_name).collect();
    format!("{}-{kind}", part.place.saturating_add(1))
}

/// Opens the directory of kept runs, or makes it. Only its owner may read it, because command lines in runs may hold secrets.
fn prepare(directory: &Path) -> io::Result<Directory> {
    let directory = Directory::create(directory, Mode::RWXU)?;
    let stat = rustix::fs::fstat(&directory)?;
    if stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 != 0 {
        // An older version or a person made it.
        let readable = rustix::fs::openat(&directory, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::fs::fchmod(&readable, Mode::RWXU)?;
    }
    writing::try_out(&directory)?;
    Ok(directory)
}

/// As root, returns the other user who owns the directory, or its first ancestor that exists: `sudo` may leave HOME unchanged.
pub(crate) fn owner_of_another(directory: &Path) -> Option<u32> {
    let is_root = rustix::process::geteuid().is_root();
    let there = directory.ancestors().find_map(|path| fs::symlink_metadata(path).ok())?;
    (is_root && there.uid() != 0).then_some(there.uid())
}

/// Returns the id of a run that began then: its UTC time, by which ids sort, and a random part, enough for ten thousand machines a
/// minute.
///
/// # Errors
/// If the year of the time does not have four digits.
pub fn new_id(began: SystemTime) -> Result<RunId, NoTime> {
    let time = humantime::format_rfc3339_seconds(began).to_string();
    let digits: String = time.chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    let id = format!("{}-{:08x}", digits.replace('T', "-"), writing::random());
    id.parse().map_err(NoTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_that_sort_by_time() {
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let earlier = new_id(at(1_795_226_067)).expect("an id");
        assert!(earlier.as_ref().starts_with("20261121-015427-"), "{earlier}");
        assert_eq!(earlier.as_ref().len(), "20261121-015427-3f2a91c4".len());
        assert!(earlier < new_id(at(1_795_226_068)).expect("an id"));
    }
}
