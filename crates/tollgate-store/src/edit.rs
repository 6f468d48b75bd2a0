//! Renames and deletes kept runs.

use std::ffi::OsString;
use std::io::{self, Write};

use rustix::fs::{AtFlags, FileType};
use tollgate_model::Label;
use tollgate_model::run::ReadError;
use tollgate_model::text::plainly;
use tollgate_os::paths::Directory;
use tollgate_os::users;

use crate::destination::owner_of_another;
use crate::document::{EXTENSION, KeepError, OpenError};
use crate::kept::{Entry, FindError, Home, home, kept};
use crate::kind::RunKind;
use crate::meant::{Meaning, among};
use crate::writing::{self, Existing, PRIVATE, Until};

/// The directory of kept runs, held open to change its runs. Nothing else in it is touched.
#[derive(Debug)]
pub struct Keeping {
    directory: Directory,
}

/// Why a kept run was not changed: a sentence.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// No run was found.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The directory cannot be used.
    #[error("kept runs cannot be changed: {0}")]
    Directory(String),
    /// The file is not a run.
    #[error("{0} {1}; remove the file itself if nothing needs it")]
    NoRun(String, String),
    /// The run cannot be written.
    #[error("the run was not renamed: {0}")]
    Written(#[from] KeepError),
    /// The file cannot be deleted.
    #[error("{0} was not deleted: {1}")]
    Deleted(String, String),
}

impl Keeping {
    /// Opens the directory of kept runs.
    ///
    /// # Errors
    /// If there is none, if root would work in another user's directory, or if the path is not trusted.
    pub fn open() -> Result<Self, EditError> {
        let (Home::Named(path) | Home::Usual(path)) = home() else { return Err(FindError::NoneKept.into()) };
        if let Some(owner) = owner_of_another(&path) {
            let (path, owner) = (path.display(), users::describe(owner));
            return Err(EditError::Directory(format!(
                "{path} is in a directory of {owner}, but tollgate runs as root"
            )));
        }
        match Directory::open(&path) {
            Ok(directory) => Ok(Self { directory }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FindError::NoneKept.into()),
            Err(error) => {
                Err(EditError::Directory(format!("{}: {}", path.display(), plainly(&error.into()))))
            }
        }
    }

    /// Finds the kept run or session that `last`, an id, a label or the beginning of an id means. Files and stored runs do not count.
    ///
    /// # Errors
    /// If there is none, or a beginning fits several.
    pub fn find(&self, meant: &str) -> Result<Vec<Entry>, EditError> {
        let found = among(kept()?, meant, RunKind::ALL)?.map(Meaning::into_all);
        Ok(found.ok_or_else(|| FindError::NotKept(meant.to_owned()))?)
    }

    /// Checks that an entry is a regular file with a run, which may have another schema. A link is refused.
    ///
    /// # Errors
    /// [`EditError::NoRun`].
    pub fn expect_run(&self, entry: &Entry) -> Result<(), EditError> {
        let no_run = |why: String| EditError::NoRun(entry.path.display().to_string(), why);
        let stat = rustix::fs::statat(&self.directory, name(entry), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| no_run(format!("cannot be read: {}", plainly(&error.into()))))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(no_run("is not a regular file".to_owned()));
        }
        match entry.outline() {
            Ok(_) | Err(OpenError::Document(ReadError::Schema { .. })) => Ok(()),
            Err(why) => Err(no_run(why.to_string())),
        }
    }

    /// Gives a run another label. The file keeps its time, and so its place among the others.
    ///
    /// # Errors
    /// If it is not a run or cannot be written; then it is unchanged.
    pub fn rename(&self, entry: &Entry, label: &Label) -> Result<(), EditError> {
        self.expect_run(entry)?;
        let opened = entry.open();
        let mut run =
            opened.map_err(|why| EditError::NoRun(entry.path.display().to_string(), why.to_string()))?;
        run.label = Some(label.clone());
        let fault = |why: String| KeepError { path: entry.path.clone(), why };
        let document = run.to_json().map_err(|error| fault(error.to_string()))?;
        let modes = (PRIVATE, None);
        writing::put(&self.directory, &name(entry), Existing::Replace, Until::Durable, modes, |file| {
            file.write_all(&document)?;
            file.set_modified(entry.written)
        })
        .map_err(|error| fault(plainly(&error)))?;
        Ok(())
    }

    /// Deletes a run.
    ///
    /// # Errors
    /// Those of [`Keeping::expect_run`], and if the file cannot be removed.
    pub fn delete(&self, entry: &Entry) -> Result<(), EditError> {
        self.expect_run(entry)?;
        let fault = |error: rustix::io::Errno| {
            EditError::Deleted(entry.path.display().to_string(), plainly(&error.into()))
        };
        rustix::fs::unlinkat(&self.directory, name(entry), AtFlags::empty()).map_err(fault)?;
        self.directory.sync();
        Ok(())
    }
}

fn name(entry: &Entry) -> OsString {
    format!("{}.{EXTENSION}", entry.id).into()
}
