//! A working directory that several processes use.
//!
//! The process that made it holds it by descriptor. The others get its path, device and inode, and refuse another directory
//! at the same path.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{ffi::OsStr, io};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A directory by path, device and inode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workdir {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Why a working directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum WorkdirError {
    /// Something else, or nothing, is at its path.
    #[error("{} was replaced while it was in use; nothing more is done there", .0.display())]
    Exchanged(PathBuf),
    /// The kernel's error.
    #[error("the directory {}: {}", .0.display(), tollgate_model::text::plainly(.1))]
    Io(PathBuf, #[source] io::Error),
}

impl Workdir {
    /// Describes an open directory by the path that leads to it from the root.
    ///
    /// # Errors
    /// The error of fstat(2).
    pub fn new(path: PathBuf, fd: impl AsFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(fd)?;
        Ok(Self { path, device: stat.st_dev, inode: stat.st_ino })
    }

    /// Finds an existing directory that no other user can exchange.
    ///
    /// # Errors
    /// The error of open(2).
    pub fn find(path: &Path) -> io::Result<Self> {
        let fd = open(path)?;
        Self::new(path.to_owned(), fd)
    }

    /// Returns the path from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of an entry.
    pub fn join(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// Opens the directory for reading, after checking that it is the one that was made.
    pub fn open(&self) -> Result<OwnedFd, WorkdirError> {
        let fault = |why: Errno| match why {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => WorkdirError::Exchanged(self.path.clone()),
            _ => WorkdirError::Io(self.path.clone(), why.into()),
        };
        let fd = open(&self.path).map_err(fault)?;
        let stat = rustix::fs::fstat(&fd).map_err(fault)?;
        if (stat.st_dev, stat.st_ino) == (self.device, self.inode) {
            Ok(fd)
        } else {
            Err(WorkdirError::Exchanged(self.path.clone()))
        }
    }
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn another_directory_under_its_path_is_refused() {
        let around = tempfile::tempdir().unwrap();
        let path = around.path().join("work");
        fs::create_dir(&path).unwrap();
        let workdir = Workdir::find(&path).unwrap();
        assert!(workdir.open().is_ok());
        let kept: Workdir = serde_json::from_str(&serde_json::to_string(&workdir).unwrap()).unwrap();
        fs::rename(&path, around.path().join("aside")).unwrap();
        let refused = |what: &str| {
            let error = kept.open().expect_err(what).to_string();
            assert!(error.contains("was replaced while it was in use"), "{what}: {error}");
        };
        refused("nothing");
        fs::create_dir(&path).unwrap();
        refused("another directory");
        fs::remove_dir(&path).unwrap();
        symlink(around.path().join("aside"), &path).unwrap();
        refused("a link to the directory");
        fs::remove_file(&path).unwrap();
        fs::rename(around.path().join("aside"), &path).unwrap();
        assert!(kept.open().is_ok());
    }
}
