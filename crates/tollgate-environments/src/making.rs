//! What an environment's preparation is given, and what it makes: directories, and promises of the cleanup process.

use std::path::Path;

use tollgate_os::private::{Place, PrivateDirectory};

use crate::cleanup::{Cleanup, Promise};
use crate::container::Paths;
use crate::error::{EnvironmentError, unusable};
use crate::known_directory::{self, promised};
use crate::prepared::Undo;

/// What is made for an environment. Dropped, it is gone.
pub(crate) struct Making {
    // In this order they are dropped.
    /// What undoes it. The last that was made comes first, and goes first.
    promises: Vec<Promise>,
    own: Option<PrivateDirectory>,
    files: Option<PrivateDirectory>,
    pub cleanup: Cleanup,
}

impl Making {
    /// Nothing yet.
    pub fn new(cleanup: &Cleanup) -> Self {
        Self { promises: Vec::new(), own: None, files: None, cleanup: cleanup.clone() }
    }

    /// Makes a directory of this environment alone, from which programs can be executed.
    pub fn make_own_directory(&mut self) -> Result<(), EnvironmentError> {
        let (private, [left, directory]) = known_directory::temporary(&self.cleanup, Place::can_execute)?;
        self.promises.splice(..0, [directory, left]);
        self.own = Some(private);
        Ok(())
    }

    /// Makes a directory in the current one, where the host's agents measure files too; none where only another user's identity would
    /// be safe there, which a container's processes do not have, or where no files are measured.
    pub fn make_directory_for_files(&mut self) {
        let Ok(place) = Place::open(Path::new(".")) else { return };
        let Ok((private, [left, directory])) = known_directory::make(&place, &self.cleanup) else { return };
        self.promises.splice(..0, [directory, left]);
        self.files = Some(private);
    }

    /// Tells the cleanup process what is to be undone.
    pub fn promise(&mut self, undo: &[Undo]) -> Result<(), EnvironmentError> {
        self.promises.insert(0, promised(&self.cleanup, undo)?);
        Ok(())
    }

    /// Its own directory, where there is one.
    pub fn own(&self) -> Result<&PrivateDirectory, EnvironmentError> {
        self.own.as_ref().ok_or_else(|| unusable!("it has no directory"))
    }

    /// The paths of its directories.
    pub fn paths(&self) -> Result<Paths<'_>, EnvironmentError> {
        Ok(Paths::new(self.own()?, self.files.as_ref()))
    }
}
