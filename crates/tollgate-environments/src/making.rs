//! Directories and promises of the cleanup process that the preparation of an environment makes.

use std::path::Path;

use tollgate_os::private::{PrivateDirectory, TrustedDirectory};

use crate::cleanup::{Cleanup, Promise};
use crate::container::Paths;
use crate::error::{EnvironmentError, unusable};
use crate::known_directory::{self, promised};
use crate::prepared::Undo;

/// Everything that was made for an environment. Dropping it removes it.
pub(crate) struct Making {
    // Fields are dropped in this order.
    /// Undo actions, the newest first, in the order in which they are performed.
    promises: Vec<Promise>,
    own: Option<PrivateDirectory>,
    files: Option<PrivateDirectory>,
    pub cleanup: Cleanup,
}

impl Making {
    pub fn new(cleanup: &Cleanup) -> Self {
        Self { promises: Vec::new(), own: None, files: None, cleanup: cleanup.clone() }
    }

    pub fn make_own_directory(&mut self) -> Result<(), EnvironmentError> {
        let (private, [left, directory]) =
            known_directory::temporary(&self.cleanup, TrustedDirectory::can_execute)?;
        self.promises.splice(..0, [directory, left]);
        self.own = Some(private);
        Ok(())
    }

    /// Makes a directory in the current one, where the host's agents measure files too. Makes none if the directory is safe
    /// only for another user's identity, which a container's processes do not have, or if no files are measured.
    pub fn make_directory_for_files(&mut self) {
        let Ok(place) = TrustedDirectory::open(Path::new(".")) else { return };
        let Ok((private, [left, directory])) = known_directory::make(&place, &self.cleanup) else { return };
        self.promises.splice(..0, [directory, left]);
        self.files = Some(private);
    }

    pub fn promise(&mut self, undo: &[Undo]) -> Result<(), EnvironmentError> {
        self.promises.insert(0, promised(&self.cleanup, undo)?);
        Ok(())
    }

    pub fn own(&self) -> Result<&PrivateDirectory, EnvironmentError> {
        self.own.as_ref().ok_or_else(|| unusable!("it has no directory"))
    }

    pub fn paths(&self) -> Result<Paths<'_>, EnvironmentError> {
        Ok(Paths::new(self.own()?, self.files.as_ref()))
    }
}
