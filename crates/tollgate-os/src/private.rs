//! Private directories whose paths may be given to other programs.
//!
//! This program holds a directory by its descriptor. A compiler, a container runtime or make(1) uses its path, and a user
//! who can exchange a directory on that path can redirect it. So a [`PrivateDirectory`] is made only in a [`TrustedDirectory`], which
//! was checked up to the root ([`trust::guard`]). Its path is the kernel's path of what was checked: no directory on it
//! belongs to another user, and none may be written by others without the sticky bit.
//!
//! This is the only way to a directory for temporary files.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::{fs, io, process::Command};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;

use crate::temporary::{PREFIX, Temporary, new_name};
use crate::trust::{self, TrustError};

/// The variable that names the directory for temporary files (POSIX, Base Definitions, 8.3).
const TMPDIR: &str = "TMPDIR";
/// Used if `TMPDIR` is not set.
const USUAL: &str = "/tmp";
/// Further directories for temporary files: hier(7), shm_overview(7).
const OTHERS: [&str; 2] = ["/var/tmp", "/dev/shm"];

/// A directory in which only root and the effective user can exchange entries, and so on up to the root.
#[derive(Debug)]
pub struct TrustedDirectory {
    /// Open for reading.
    fd: OwnedFd,
    path: PathBuf,
}

impl TrustedDirectory {
    /// Checks an existing directory.
    ///
    /// # Errors
    /// Another user could exchange entries on the path; the kernel's.
    pub fn open(path: &Path) -> Result<Self, TrustError> {
        let directory = trust::judge(path)?;
        let fault = |why: io::Error| TrustError::Io(path.to_owned(), why);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd =
            rustix::fs::openat(&directory, ".", flags, Mode::empty()).map_err(|why| fault(why.into()))?;
        // The given path is not kept: `..` after another user's directory may lead elsewhere by now.
        let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(fault)?;
        Ok(Self { fd, path })
    }

    /// Returns its path from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether other users may make entries in it, as in a sticky /tmp. Entries found there may be theirs.
    pub fn is_shared(&self) -> bool {
        rustix::fs::fstat(&self.fd).map_or(true, |stat| trust::is_shared(self.fd.as_fd(), &stat))
    }

    /// Returns whether its mount allows programs in it to be executed.
    pub fn can_execute(&self) -> bool {
        !rustix::fs::fstatvfs(&self.fd).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NOEXEC))
    }
}

impl AsFd for TrustedDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the places for temporary files in the order in which they are tried: `$TMPDIR`, or else /tmp; /var/tmp;
/// /dev/shm. A directory that another user could exchange is skipped.
pub fn temporary_places() -> impl Iterator<Item = TrustedDirectory> {
    let named = std::env::var_os(TMPDIR).filter(|named| !named.is_empty());
    let first = named.map_or_else(|| USUAL.into(), PathBuf::from);
    std::iter::once(first)
        .chain(OTHERS.map(PathBuf::from))
        .filter_map(|path| TrustedDirectory::open(&path).ok())
}

/// A directory in a [`TrustedDirectory`] for this process alone. Dropping it removes it with its contents.
#[derive(Debug)]
pub struct PrivateDirectory {
    own: Temporary,
    path: PathBuf,
}

impl PrivateDirectory {
    /// Makes one in the first of [`temporary_places`] that accepts it.
    ///
    /// # Errors
    /// The error of the last place tried; `PermissionDenied` with a message if there is no place.
    pub fn temporary() -> io::Result<Self> {
        Self::of_temporary(|_| true)
    }

    /// Makes one in which programs can be executed.
    ///
    /// # Errors
    /// As [`Self::temporary`].
    pub fn for_programs() -> io::Result<Self> {
        Self::of_temporary(TrustedDirectory::can_execute)
    }

    fn of_temporary(suits: fn(&TrustedDirectory) -> bool) -> io::Result<Self> {
        let mut why = None;
        for place in temporary_places().filter(suits) {
            match Self::make(&place) {
                Ok(made) => return Ok(made),
                Err(error) => why = Some(error.into()),
            }
        }
        let no_place = "other users could replace the files in use in each directory for temporary files ($TMPDIR, /var/tmp, /dev/shm), or \
            no program can be executed there; set TMPDIR to a directory of your own";
        Err(why.unwrap_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, no_place)))
    }

    /// Makes one, and removes those that killed programs of this user left there.
    ///
    /// # Errors
    /// As [`Self::named`].
    pub fn make(place: &TrustedDirectory) -> Result<Self, Errno> {
        drop(Self::left(place, PREFIX));
        Self::named(place, new_name(PREFIX)?)
    }

    /// Makes one with a name from [`new_name`].
    ///
    /// # Errors
    /// As [`Temporary::named`]; `STALE` if its path does not lead to it, for example because of a later mount.
    pub fn named(place: &TrustedDirectory, name: String) -> Result<Self, Errno> {
        let made = Self::new(place, Temporary::named(place, name)?);
        let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let found = rustix::fs::statat(CWD, &made.path, AtFlags::SYMLINK_NOFOLLOW)?;
        if id(found) == id(rustix::fs::fstat(&made)?) { Ok(made) } else { Err(Errno::STALE) }
    }

    /// Takes over the directories in a place that killed programs of this user left.
    pub fn left(place: &TrustedDirectory, prefix: &str) -> Vec<Self> {
        let left = Temporary::left(place, prefix);
        left.into_iter().map(|own| Self::new(place, own)).collect()
    }

    fn new(place: &TrustedDirectory, own: Temporary) -> Self {
        Self { path: place.path.join(own.name()), own }
    }

    /// Returns its path from the root, also for other programs: it leads to this directory as long as this exists.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the command line of another program that makes its temporary files here.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let (name, value) = self.variable();
        command.env(name, value);
        command
    }

    /// Returns the environment variable that makes another program put its temporary files here.
    pub fn variable(&self) -> (&'static str, &Path) {
        (TMPDIR, &self.path)
    }

    /// Leaves it for the next run, which has to know its contents.
    pub fn leave(&self) {
        self.own.leave();
    }
}

impl AsFd for PrivateDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    const OTHER: u32 = 54_321;

    fn moded(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn its_path_leads_to_it_and_it_goes_when_it_is_dropped() {
        let under = tempfile::tempdir().unwrap();
        let link = under.path().join("link");
        let real = under.path().join("real");
        fs::create_dir(&real).unwrap();
        symlink("real", &link).unwrap();
        let made = PrivateDirectory::make(&TrustedDirectory::open(&link).unwrap()).unwrap();
        let metadata = fs::symlink_metadata(made.path()).unwrap();
        assert_eq!(metadata.ino(), rustix::fs::fstat(&made).unwrap().st_ino);
        assert_eq!(metadata.mode() & 0o7777, 0o700);
        assert_eq!(made.path().parent(), Some(fs::canonicalize(&real).unwrap().as_path()));
        fs::write(made.path().join("file"), "").unwrap();
        let path = made.path().to_owned();
        drop(made);
        assert!(!path.exists());
    }

    #[test]
    fn a_program_makes_its_temporary_files_there() {
        let made = PrivateDirectory::temporary().unwrap();
        let said = made.command("/bin/sh").args(["-c", "printf %s \"$TMPDIR\""]).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), made.path().to_str().unwrap());
    }

    #[test]
    fn what_a_killed_program_left_is_removed_by_the_next() {
        let under = tempfile::tempdir().unwrap();
        let place = TrustedDirectory::open(under.path()).unwrap();
        let left = PrivateDirectory::make(&place).unwrap();
        left.leave();
        drop(left);
        // A copy of this process that another test has forked holds its lock for a moment.
        let is_removed = || {
            let next = PrivateDirectory::make(&place).unwrap();
            let names: Vec<_> =
                fs::read_dir(under.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            names == [next.path()]
        };
        assert!((0..100_000).any(|_| is_removed()));
    }

    #[test]
    fn no_place_is_below_a_directory_that_others_can_exchange() {
        let under = tempfile::tempdir().unwrap();
        let above = under.path().join("above");
        let inner = above.join("inner");
        fs::create_dir_all(&inner).unwrap();
        assert!(TrustedDirectory::open(&inner).is_ok());
        for (mode, is_place) in [(0o777, false), (0o1777, true), (0o755, true)] {
            moded(&above, mode);
            assert_eq!(TrustedDirectory::open(&inner).is_ok(), is_place, "{mode:o}");
            assert_eq!(
                TrustedDirectory::open(&above).map(|place| place.is_shared()).ok(),
                is_place.then_some(mode != 0o755)
            );
        }
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root (to give a directory to another user)");
            return;
        }
        // Also in a sticky directory: its owner may rename its entries.
        for mode in [0o755, 0o1777] {
            moded(&above, mode);
            chown(&above, Some(OTHER), None).unwrap();
            let why = TrustedDirectory::open(&inner).unwrap_err().to_string();
            assert!(why.contains("uid 54321") && why.contains("could replace"), "{why}");
        }
        chown(&above, Some(0), None).unwrap();
        std::os::unix::fs::lchown(&above, Some(0), Some(OTHER)).unwrap();
        moded(&above, 0o770);
        assert!(TrustedDirectory::open(&inner).is_err(), "a group of others may write it");
    }

    #[test]
    fn a_link_of_another_user_leads_to_no_place() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root (to give a link to another user)");
            return;
        }
        let under = tempfile::tempdir().unwrap();
        let link = under.path().join("link");
        symlink("/var/tmp", &link).unwrap();
        assert!(TrustedDirectory::open(&link).is_ok());
        std::os::unix::fs::lchown(&link, Some(OTHER), None).unwrap();
        let why = TrustedDirectory::open(&link).unwrap_err().to_string();
        assert!(why.contains("symbolic link"), "{why}");
    }
}
