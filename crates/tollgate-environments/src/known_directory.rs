//! Private directories that the guardian knows of, from before they are made.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::directory::Private;
use crate::error::{EnvironmentError, plainly, unusable};
use crate::guardian::{Guardian, Promise};
use crate::prepared::Undo;

/// Makes a private directory in `under`, as [`Private::make`] does, with what undoes it. Its number in the file system is known when it is
/// made, and this program can be killed in between: so what it leaves there is promised first.
///
/// # Errors
/// As [`Private::make`], and where the guardian is not reached.
pub(crate) fn make(under: &Path, guardian: &Guardian) -> Result<(Private, [Promise; 2]), EnvironmentError> {
    let of = |error| unusable!("{}: {}", under.display(), plainly(error));
    let absolute = std::path::absolute(under).map_err(of)?;
    let left = promised(guardian, &[Undo::Left { under: absolute, pid: std::process::id().cast_signed() }])?;
    let private = Private::make(under)?;
    let path = private.workdir().path().to_owned();
    let metadata = path.metadata().map_err(of)?;
    let (device, inode) = (metadata.dev(), metadata.ino());
    let directory = promised(guardian, &[Undo::Directory { path, device, inode }])?;
    Ok((private, [left, directory]))
}

/// Tells the guardian what is to be undone.
///
/// # Errors
/// It is not reached.
pub(crate) fn promised(guardian: &Guardian, undo: &[Undo]) -> Result<Promise, EnvironmentError> {
    guardian.promise(undo).map_err(|error| unusable!("the guardian: {}", plainly(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_promises() {
        let under = tempfile::tempdir().unwrap();
        let guardian = Guardian::begin().unwrap();
        let (private, promises) = make(under.path(), &guardian).unwrap();
        assert!(private.workdir().path().is_dir());
        drop(promises);
        assert_eq!(std::fs::read_dir(under.path()).unwrap().count(), 0);
        drop(private);
    }
}
