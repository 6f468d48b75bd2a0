//! Writes outputs at names where another user may have placed something.
//!
//! An existing file is replaced by rename(2), or emptied if no other user can have given it that name
//! (`fs.protected_hardlinks`). In a sticky directory that others may write, a file of another user is refused
//! (`fs.protected_regular`). A FIFO of another user is refused everywhere (`fs.protected_fifos`).

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::{fs::File, io, path::Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Directory, Missing, PathError, Walk};
use crate::users;

/// The target of an output path.
#[derive(Debug)]
pub enum Output {
    /// A name in a directory, of a regular file or of nothing yet.
    File {
        /// The directory that the name is in.
        directory: Directory,
        /// Its name in that directory.
        name: OsString,
        /// Permission bits for a file that replaces this one: those of an existing file of the effective user, without the
        /// set-user-ID, set-group-ID and execute bits.
        mode: Option<Mode>,
    },
    /// A device, FIFO or socket, which is written in place.
    Stream {
        /// The directory that it is in.
        directory: Directory,
        /// Its name in that directory.
        name: OsString,
        /// Whether it is a descriptor of this process in `/proc`, which the kernel follows.
        is_descriptor: bool,
    },
}

impl Output {
    /// Finds the target of a path for writing, without making or changing anything.
    pub fn find(path: &Path) -> Result<Self, PathError> {
        let mut walk = Walk::begin(path)?;
        let Some(found) = walk.last(Missing::Refused)? else {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        };
        let directory = Directory { fd: walk.at, path: walk.path };
        let whole = directory.path.join(&found.name);
        let Some(stat) = found.stat else {
            return Ok(Self::File { directory, name: found.name, mode: None });
        };
        let own = rustix::process::geteuid().as_raw();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Err(io::Error::from(io::ErrorKind::IsADirectory).into()),
            FileType::RegularFile => {
                let around = rustix::fs::fstat(&directory.fd)?;
                let is_shared = around.st_mode & 0o1000 != 0 && around.st_mode & 0o022 != 0;
                if is_shared && stat.st_uid != own && stat.st_uid != around.st_uid {
                    return Err(PathError::Foreign(whole, users::describe(stat.st_uid)));
                }
                let mode = (stat.st_uid == own).then(|| Mode::from_raw_mode(stat.st_mode & 0o666));
                Ok(Self::File { directory, name: found.name, mode })
            }
            FileType::Fifo if !found.is_descriptor && stat.st_uid != own && stat.st_uid != 0 => {
                Err(PathError::ForeignFifo(whole, users::describe(stat.st_uid)))
            }
            _ => Ok(Self::Stream { directory, name: found.name, is_descriptor: found.is_descriptor }),
        }
    }

    /// Returns the directory, for a message or a test write.
    pub fn directory(&self) -> &Directory {
        match self {
            Self::File { directory, .. } | Self::Stream { directory, .. } => directory,
        }
    }
}

/// Opens an output path for writing as a shell's `>` does: makes a regular file, or empties it.
///
/// # Errors
/// As [`Output::find`] and [`open_stream`]; the kernel's.
pub fn open_emptied(path: &Path) -> Result<File, PathError> {
    match Output::find(path)? {
        Output::File { directory, name, .. } => {
            let flags = OFlags::WRONLY | OFlags::CREATE;
            let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            let file = rustix::fs::openat(&directory.fd, &name, flags, Mode::from_raw_mode(0o666))?;
            expect_only_name(&directory, &name, &file)?;
            rustix::fs::ftruncate(&file, 0)?;
            rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
            Ok(File::from(file))
        }
        Output::Stream { directory, name, is_descriptor } => open_stream(&directory, &name, is_descriptor),
    }
}

/// Refuses a file to which another user, who may write this directory, has given a second name there. It may be any file of
/// the file system if the kernel lets users link files of others (proc_sys_fs(5), `protected_hardlinks`).
///
/// A single call to the kernel returns both the file of this name and its number of links, so no link can come or go in
/// between.
fn expect_only_name(directory: &Directory, name: &OsStr, file: &OwnedFd) -> Result<(), PathError> {
    let around = rustix::fs::fstat(&directory.fd)?;
    let own = rustix::process::geteuid().as_raw();
    let writer = match around.st_uid {
        owner if owner != own && !users::is_roots(owner) => users::describe(owner),
        _ if around.st_mode & 0o022 != 0 => "another user".to_owned(),
        _ => return Ok(()),
    };
    let (opened, named) =
        (rustix::fs::fstat(file)?, rustix::fs::statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW)?);
    if (named.st_dev, named.st_ino, named.st_nlink) == (opened.st_dev, opened.st_ino, 1) {
        Ok(())
    } else {
        Err(PathError::SecondName(directory.path.join(name), writer))
    }
}

/// Opens a device, FIFO or socket for writing. A FIFO without a reader is an error, since waiting for one could take
/// forever.
///
/// # Errors
/// The error of open(2); it has become a regular file in the meantime.
pub fn open_stream(directory: &Directory, name: &OsStr, is_descriptor: bool) -> Result<File, PathError> {
    let follow = if is_descriptor { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY | follow;
    let file = rustix::fs::openat(&directory.fd, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && !is_descriptor {
        return Err(Errno::AGAIN.into());
    }
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    /// Makes a file with a second name in a directory of this mode and owner, and returns both directories.
    fn linked(mode: u32, owner: Option<u32>) -> (tempfile::TempDir, tempfile::TempDir) {
        let (own, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(own.path().join("precious"), "precious").unwrap();
        fs::hard_link(own.path().join("precious"), shared.path().join("link")).unwrap();
        fs::set_permissions(shared.path(), fs::Permissions::from_mode(mode)).unwrap();
        chown(shared.path(), owner, None).unwrap();
        (own, shared)
    }

    #[test]
    fn a_file_that_another_user_may_have_linked_is_not_emptied() {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root {
            println!("skipped in part: needs root (to give a directory to another user)");
        }
        for (mode, owner) in [(0o1777, None), (0o755, Some(54_321))] {
            if owner.is_some() && !is_root {
                continue;
            }
            let (own, shared) = linked(mode, owner);
            let why = open_emptied(&shared.path().join("link")).unwrap_err().to_string();
            assert!(why.contains("has a second name"), "{why}");
            assert_eq!(fs::read(own.path().join("precious")).unwrap(), b"precious");
            fs::write(shared.path().join("only"), "before").unwrap();
            open_emptied(&shared.path().join("only")).unwrap().write_all(b"after").unwrap();
            assert_eq!(fs::read(shared.path().join("only")).unwrap(), b"after");
            open_emptied(&shared.path().join("new")).unwrap().write_all(b"new").unwrap();
        }
    }

    #[test]
    fn links_in_an_own_directory_are_its_owners() {
        let (own, shared) = linked(0o755, None);
        open_emptied(&shared.path().join("link")).unwrap();
        assert_eq!(fs::read(own.path().join("precious")).unwrap(), b"");
    }
}
