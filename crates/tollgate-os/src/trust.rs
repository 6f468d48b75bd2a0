//! Checks whether other users can exchange the entries of a directory.
//!
//! The owner of a directory, and every user who may write it without the sticky bit, can rename each entry and put another
//! in its place. So a working directory is only as safe as the least safe directory above it. [`guard`] checks all of them
//! by descriptor, from the directory up to the root.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use tollgate_model::bounded;

use crate::paths::{Directory, PathError, open_regular};
use crate::users;

/// The most nested directories that are checked; PATH_MAX allows half as many.
const MAX_DEPTH: usize = 4096;

/// Why a directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The directory or one above it belongs to this other user.
    #[error("{} belongs to {}, who could replace the files in use there; name a directory of your own", .0.display(), users::describe(*.1))]
    Foreign(PathBuf, u32),
    /// Others may write the directory or one above it, with these permission bits.
    #[error("{} may be written by others (mode {:04o}), who could replace the files in use there; {}", .0.display(), .1, remedy(*.1))]
    Writable(PathBuf, u32),
    /// Another user has written the file, or could; with its path and which of the two.
    #[error("{} {}", .0.display(), .1)]
    File(PathBuf, String),
    /// A link on the path that another user controls, or a file that is not regular or too long.
    #[error(transparent)]
    Link(PathError),
    /// The kernel's error.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, std::io::Error),
}

fn remedy(mode: u32) -> String {
    let who = if mode & 0o002 != 0 { 'o' } else { 'g' };
    format!("remove that right (chmod {who}-w), set the sticky bit (chmod +t), or name another directory")
}

/// Opens a directory in which only root and the effective user can exchange entries.
///
/// # Errors
/// As [`Directory::open`] and [`guard`].
pub fn judge(path: &Path) -> Result<Directory, TrustError> {
    let directory = Directory::open(path).map_err(|why| match why {
        PathError::Io(why) => TrustError::Io(path.to_owned(), why),
        other => TrustError::Link(other),
    })?;
    guard(&directory)?;
    Ok(directory)
}

/// Reads a regular file of at most `most` bytes that only root and the effective user can have written or put in its place.
///
/// # Errors
/// Another user could have; as [`read_regular`](crate::paths::read_regular).
pub fn read_own(path: &Path, most: u64) -> Result<Vec<u8>, TrustError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    judge(parent)?;
    let fault = |why| match why {
        PathError::Io(why) => TrustError::Io(path.to_owned(), why),
        other => TrustError::Link(other),
    };
    let file = open_regular(path).map_err(fault)?;
    let stat = rustix::fs::fstat(&file).map_err(|why| fault(why.into()))?;
    if stat.st_uid != rustix::process::geteuid().as_raw() && !users::is_roots(stat.st_uid) {
        return Err(TrustError::File(
            path.to_owned(),
            format!("belongs to {}", users::describe(stat.st_uid)),
        ));
    }
    if is_shared(file.as_fd(), &stat) {
        let why = format!("may be written by others (mode {:04o})", stat.st_mode & 0o7777);
        return Err(TrustError::File(path.to_owned(), why));
    }
    let bytes = bounded::whole(&file, most).map_err(|why| TrustError::Io(path.to_owned(), why))?;
    bytes.ok_or_else(|| fault(PathError::TooLarge(path.to_owned(), most)))
}

/// Checks that only root and the effective user can exchange the entries of a directory.
///
/// # Errors
/// Another user can.
pub fn guard(directory: &Directory) -> Result<(), TrustError> {
    let own = rustix::process::geteuid().as_raw();
    for step in ancestors(directory)? {
        let (uid, mode) = (step.stat.st_uid, step.stat.st_mode);
        if uid != own && !users::is_roots(uid) {
            return Err(TrustError::Foreign(step.path, uid));
        }
        if is_shared(step.fd.as_fd(), &step.stat) && mode & 0o1000 == 0 {
            return Err(TrustError::Writable(step.path, mode & 0o7777));
        }
    }
    Ok(())
}

/// Returns whether users other than its owner and root may write a file, or make entries in a directory.
pub(crate) fn is_shared(file: BorrowedFd<'_>, stat: &Stat) -> bool {
    stat.st_mode & 0o002 != 0 || (stat.st_mode & 0o020 != 0 && !is_private(file, stat))
}

/// Returns whether the group's write permission reaches only the owner. With an access control list, the group's bits are a
/// mask for other users as well (acl(5)).
fn is_private(file: BorrowedFd<'_>, stat: &Stat) -> bool {
    let is_alone = stat.st_gid == 0 || users::is_private_group(stat.st_gid, stat.st_uid);
    is_alone && !has_access_list(file)
}

fn has_access_list(file: BorrowedFd<'_>) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // A directory is held without read permission, which reading the list needs.
    let directory = rustix::fs::openat(file, ".", flags, Mode::empty());
    let readable = directory.as_ref().map_or(file, AsFd::as_fd);
    let mut none: [u8; 0] = [];
    rustix::fs::fgetxattr(readable, "system.posix_acl_access", &mut none).is_ok_and(|bytes| bytes > 0)
}

struct Step {
    fd: OwnedFd,
    stat: Stat,
    path: PathBuf,
}

/// Returns a directory and all above it, up to the root of this process.
fn ancestors(directory: &Directory) -> Result<Vec<Step>, TrustError> {
    let fault = |why: Errno| TrustError::Io(directory.path().to_owned(), why.into());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut fd = rustix::fs::openat(directory, ".", flags, Mode::empty()).map_err(fault)?;
    let mut steps: Vec<Step> = Vec::new();
    loop {
        let stat = rustix::fs::fstat(&fd).map_err(fault)?;
        let above = rustix::fs::openat(&fd, "..", flags, Mode::empty()).map_err(fault)?;
        let is_root = rustix::fs::fstat(&above)
            .is_ok_and(|above| (above.st_dev, above.st_ino) == (stat.st_dev, stat.st_ino));
        let path = name_of(&fd, directory.path(), steps.len());
        steps.push(Step { fd, stat, path });
        if is_root {
            return Ok(steps);
        }
        if steps.len() >= MAX_DEPTH {
            return Err(fault(Errno::NAMETOOLONG));
        }
        fd = above;
    }
}

/// Returns a directory's path for a message: the kernel's, or the one by which it was reached.
fn name_of(fd: &OwnedFd, from: &Path, up: usize) -> PathBuf {
    use std::os::fd::AsRawFd;
    let known = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    known.unwrap_or_else(|_| (0..up).fold(from.to_owned(), |path, _| path.join("..")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    fn made(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).unwrap();
        (place, inner)
    }

    fn guarded(path: &Path) -> Result<(), TrustError> {
        guard(&Directory::open(path).unwrap())
    }

    #[test]
    fn a_directory_of_ones_own_is_own_and_one_that_all_may_write_is_refused() {
        let (_place, inner) = made(0o755);
        guarded(&inner).unwrap();
        let (_place, inner) = made(0o777);
        let refused = guarded(&inner).unwrap_err();
        assert!(matches!(refused, TrustError::Writable { .. }) && refused.to_string().contains("chmod o-w"));
        let below = inner.join("below");
        fs::create_dir(&below).unwrap();
        assert!(matches!(guarded(&below), Err(TrustError::Writable { .. })), "one above counts as well");
        let (_place, inner) = made(0o1777);
        guarded(&inner).unwrap();
    }

    #[test]
    fn another_users_directory_is_refused_to_root_too_and_what_is_below_it() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root (to give a directory to another user)");
            return;
        }
        let (_place, inner) = made(0o1777);
        let below = inner.join("below");
        fs::create_dir(&below).unwrap();
        chown(&inner, Some(54_321), Some(54_322)).unwrap();
        for path in [&inner, &below] {
            let refused = guarded(path).unwrap_err();
            assert!(matches!(&refused, TrustError::Foreign(named, 54_321) if *named == inner), "{refused}");
        }
    }

    #[test]
    fn a_file_is_read_only_where_no_other_user_can_have_written_it() {
        let (place, inner) = made(0o755);
        let file = inner.join("file");
        fs::write(&file, "own").unwrap();
        let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let why = |path: &Path| read_own(path, 100).unwrap_err().to_string();
        mode(0o644);
        assert_eq!(read_own(&file, 100).unwrap(), b"own");
        mode(0o666);
        assert!(why(&file).ends_with("may be written by others (mode 0666)"), "{}", why(&file));
        mode(0o644);
        assert!(
            why(&inner).contains("Is a directory")
                && why(&place.path().join("none")).contains("No such file")
        );
        let long = read_own(&file, 2).unwrap_err();
        assert!(matches!(long, TrustError::Link(PathError::TooLarge(_, 2))), "{long}");
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(read_own(&file, 100), Err(TrustError::Writable(..))));
        if !rustix::process::geteuid().is_root() {
            println!("skipped in part: needs root (to give a file to another user)");
            return;
        }
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o1777)).unwrap();
        chown(&file, Some(54_321), None).unwrap();
        assert!(why(&file).ends_with("file belongs to uid 54321"), "{}", why(&file));
        chown(&file, Some(0), None).unwrap();
        chown(&inner, Some(54_321), None).unwrap();
        assert!(matches!(read_own(&file, 100), Err(TrustError::Foreign(..))));
    }
}
