//! Private directories that the cleanup process knows of before they are made.

use tollgate_os::private::{PrivateDirectory, TrustedDirectory, temporary_places};

use crate::cleanup::{Cleanup, Promise};
use crate::directory::{expect_local, unmade};
use crate::error::{EnvironmentError, plainly, unusable};
use crate::prepared::Undo;

/// Makes a private directory like [`PrivateDirectory::make`], with the promises to remove it. Its inode is known only once it
/// exists, and this program can be killed in between: so a promise to remove this program's leftovers comes first. Also fails
/// on a network file system, and if the cleanup process cannot be reached.
pub(crate) fn make(
    place: &TrustedDirectory,
    cleanup: &Cleanup,
) -> Result<(PrivateDirectory, [Promise; 2]), EnvironmentError> {
    let under = place.path();
    expect_local(place, under)?;
    let left =
        promised(cleanup, &[Undo::Left { under: under.to_owned(), pid: std::process::id().cast_signed() }])?;
    let private = PrivateDirectory::make(place).map_err(|error| unmade(under, error))?;
    let path = private.path().to_owned();
    let stat = rustix::fs::fstat(&private).map_err(|error| EnvironmentError::new(path.display(), error))?;
    let directory = promised(cleanup, &[Undo::Directory { path, device: stat.st_dev, inode: stat.st_ino }])?;
    Ok((private, [left, directory]))
}

/// Makes one in the first place for temporary files that is `fit` and accepts it.
pub(crate) fn temporary(
    cleanup: &Cleanup,
    fit: impl Fn(&TrustedDirectory) -> bool,
) -> Result<(PrivateDirectory, [Promise; 2]), EnvironmentError> {
    let mut why = None;
    for place in temporary_places().filter(fit) {
        match make(&place, cleanup) {
            Ok(made) => return Ok(made),
            Err(error) => why = why.or(Some(error)),
        }
    }
    Err(why.unwrap_or_else(|| {
        unusable!(
            "neither $TMPDIR (or else /tmp) nor /var/tmp nor /dev/shm allows a program to be executed and keeps other users from replacing it; set TMPDIR to a directory that does"
        )
    }))
}

pub(crate) fn promised(cleanup: &Cleanup, undo: &[Undo]) -> Result<Promise, EnvironmentError> {
    cleanup.promise(undo).map_err(|error| unusable!("the cleanup process: {}", plainly(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_promises() {
        let under = tempfile::tempdir().unwrap();
        let cleanup = Cleanup::begin().unwrap();
        let (private, promises) = make(&TrustedDirectory::open(under.path()).unwrap(), &cleanup).unwrap();
        assert!(private.path().is_dir());
        drop(promises);
        assert_eq!(std::fs::read_dir(under.path()).unwrap().count(), 0);
        drop(private);
    }
}
