//! Paths that other users may have prepared.
//!
//! A path is walked directory by directory, and each is held by its descriptor (openat(2) with O_PATH and O_NOFOLLOW), so
//! exchanging a directory that was already passed changes nothing. A symbolic link is followed only if root or the
//! effective user owns both the link and its directory, and no other user can rename it. This is stricter than the kernel's
//! rule for sticky directories (`fs.protected_symlinks`, proc_sys_fs(5)) and also holds in directories that another user
//! owns.
//!
//! `reading`: files that another user may have made. `writing`: outputs.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::{collections::VecDeque, io, os::unix::ffi::OsStringExt};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::users;

mod reading;
mod writing;

pub use reading::{open_regular, read_regular};
pub use writing::{Output, open_emptied, open_stream};

/// The kernel follows as many links (path_resolution(7)).
const MAX_LINKS: usize = 40;
/// `PROC_SUPER_MAGIC` of linux/magic.h.
const PROCFS: u64 = 0x9fa0;

/// Why a path was refused.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// Another user owns the link, or could exchange it; with the owner of the link or of its directory.
    #[error("{} is a symbolic link that {} controls and is not followed; name the file itself, or remove the link", .0.display(), .1)]
    Link(PathBuf, String),
    /// A symbolic link in a place that allows none.
    #[error("{} is a symbolic link; links are not followed here", .0.display())]
    AnyLink(PathBuf),
    /// A file of another user in a sticky directory; with its owner.
    #[error("{} belongs to {} and is in a directory that others may write; it is not replaced: name another file", .0.display(), .1)]
    Foreign(PathBuf, String),
    /// A FIFO of another user; with its owner.
    #[error("{} is a FIFO of {}, which is not written; name another file", .0.display(), .1)]
    ForeignFifo(PathBuf, String),
    /// A file with a second hard link, in a directory of another user; with that user.
    #[error("{} has a second name (hard link), which {} may have given it; it is not emptied: name another file", .0.display(), .1)]
    SecondName(PathBuf, String),
    /// Not a regular file, although one is to be read; with what it is.
    #[error("{} is {}; a regular file would be right", .0.display(), .1)]
    NotRegular(PathBuf, &'static str),
    /// The file is longer than the limit for its kind; with the limit in bytes.
    #[error("{} has more than {} bytes, the limit for such a file", .0.display(), .1)]
    TooLarge(PathBuf, u64),
    /// The kernel's error.
    #[error("{}", tollgate_model::text::plainly(.0))]
    Io(#[from] io::Error),
}

impl PathError {
    /// Returns the kind of the kernel's error, and `PermissionDenied` for any other reason.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Io(why) => why.kind(),
            _ => io::ErrorKind::PermissionDenied,
        }
    }
}

impl From<Errno> for PathError {
    fn from(why: Errno) -> Self {
        Self::Io(why.into())
    }
}

/// Lets writers return one kind of error. The message stays.
impl From<PathError> for io::Error {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Io(why) => why,
            other => Self::new(other.kind(), other),
        }
    }
}

/// A directory that is held by its descriptor.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Finds an existing directory.
    pub fn open(path: &Path) -> Result<Self, PathError> {
        Self::walk(path, Missing::Refused)
    }

    /// Finds a directory and makes the missing parts of its path, each with `mode` less the umask.
    pub fn create(path: &Path, mode: Mode) -> Result<Self, PathError> {
        Self::walk(path, Missing::Made(mode))
    }

    /// Holds a directory that is already open; `path` is for messages.
    ///
    /// # Errors
    /// The descriptor cannot be duplicated.
    pub fn new(fd: impl AsFd, path: &Path) -> Result<Self, PathError> {
        let fd = open_at(fd, OsStr::new("."), OFlags::DIRECTORY)?;
        Ok(Self { fd, path: path.to_owned() })
    }

    fn walk(path: &Path, missing: Missing) -> Result<Self, PathError> {
        let mut walk = Walk::begin(path)?;
        while walk.step(missing)? {}
        Ok(Self { fd: walk.at, path: walk.path })
    }

    /// Opens a directory inside this one. No link is followed.
    pub fn inner(&self, name: &OsStr) -> Result<Self, PathError> {
        let path = self.path.join(name);
        match open_at(self.as_fd(), name, OFlags::DIRECTORY) {
            Ok(fd) => Ok(Self { fd, path }),
            Err(Errno::NOTDIR) if is_link(self.as_fd(), name) => Err(PathError::AnyLink(path)),
            Err(why) => Err(why.into()),
        }
    }

    /// Opens a directory inside this one, or makes it with `mode` less the umask. No link is followed.
    pub fn inner_or_new(&self, name: &OsStr, mode: Mode) -> Result<Self, PathError> {
        match rustix::fs::mkdirat(&self.fd, name, mode) {
            Ok(()) | Err(Errno::EXIST) => self.inner(name),
            // On a read-only file system mkdirat(2) fails with EROFS even if the directory exists.
            Err(why) => self.inner(name).map_err(|_| why.into()),
        }
    }

    /// Opens the directory at a relative path of plain names below this one, and makes each missing part. No link is
    /// followed.
    ///
    /// # Errors
    /// As [`PathError`] says; `InvalidInput` if the path is absolute or has a `..`.
    pub fn below(&self, path: &Path, mode: Mode) -> Result<Self, PathError> {
        let mut at = self.try_clone()?;
        for component in path.components() {
            match component {
                Component::Normal(name) => at = at.inner_or_new(name, mode)?,
                Component::CurDir => {}
                _ => return Err(io::Error::from(io::ErrorKind::InvalidInput).into()),
            }
        }
        Ok(at)
    }

    /// Returns a second descriptor of the same directory.
    ///
    /// # Errors
    /// The descriptor cannot be duplicated.
    pub fn try_clone(&self) -> Result<Self, PathError> {
        Ok(Self { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// Returns the path by which it was named, with links on the way resolved. It is for messages: another user may have
    /// renamed the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until its entries are on the disk (fsync(2)). For a directory that may not be read, this leaves the timing to
    /// the kernel.
    pub fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(readable) = rustix::fs::openat(&self.fd, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(&readable);
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[derive(Debug, Clone, Copy)]
enum Missing {
    Refused,
    Made(Mode),
}

struct Last {
    name: OsString,
    /// `None` if the name does not exist.
    stat: Option<Stat>,
    is_descriptor: bool,
}

struct Walk {
    at: OwnedFd,
    path: PathBuf,
    rest: VecDeque<OsString>,
    links: usize,
}

impl Walk {
    fn begin(path: &Path) -> Result<Self, PathError> {
        if path.as_os_str().is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound).into());
        }
        let start = if path.is_absolute() { "/" } else { "." };
        let at = open_at(CWD, OsStr::new(start), OFlags::DIRECTORY)?;
        let mut walk = Self { at, path: PathBuf::from(start), rest: VecDeque::new(), links: 0 };
        walk.put_before(path);
        Ok(walk)
    }

    /// Walks one component. Returns false at the end of the path.
    fn step(&mut self, missing: Missing) -> Result<bool, PathError> {
        let Some(name) = self.rest.pop_front() else { return Ok(false) };
        match open_at(self.at.as_fd(), &name, OFlags::DIRECTORY) {
            Ok(next) => self.descend(&name, next),
            Err(Errno::NOTDIR) if is_link(self.at.as_fd(), &name) => {
                if let Some(directory) = self.follow(&name)? {
                    self.descend(&name, directory);
                }
            }
            Err(Errno::NOENT) => {
                let Missing::Made(mode) = missing else { return Err(Errno::NOENT.into()) };
                match rustix::fs::mkdirat(&self.at, &name, mode) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(why) => return Err(why.into()),
                }
                let next = open_at(self.at.as_fd(), &name, OFlags::DIRECTORY)?;
                self.descend(&name, next);
            }
            Err(why) => return Err(why.into()),
        }
        Ok(true)
    }

    /// Walks all components but the last, which may name anything or nothing. Returns `None` if the path itself names a
    /// directory: `/`, `a/..`.
    fn last(&mut self, missing: Missing) -> Result<Option<Last>, PathError> {
        loop {
            while self.rest.len() > 1 {
                self.step(missing)?;
            }
            let Some(name) = self.rest.pop_front() else { return Ok(None) };
            if name == ".." {
                return Ok(None);
            }
            let found = |stat, is_descriptor| Ok(Some(Last { name: name.clone(), stat, is_descriptor }));
            let stat = match rustix::fs::statat(&self.at, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return found(None, false),
                Err(why) => return Err(why.into()),
            };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                return found(Some(stat), false);
            }
            if let Some(opened) = self.follow(&name)? {
                let stat = rustix::fs::fstat(&opened)?;
                return found(Some(stat), true);
            }
        }
    }

    fn descend(&mut self, name: &OsStr, next: OwnedFd) {
        self.at = next;
        self.path.push(name);
    }

    /// Puts the target of a link in front of the rest of the path. A link of procfs stands for a file, not for a path
    /// (proc_pid_fd(5)): the kernel follows it, and the result is that file.
    fn follow(&mut self, name: &OsStr) -> Result<Option<OwnedFd>, PathError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let link = open_at(self.at.as_fd(), name, OFlags::empty())?;
        let around = rustix::fs::fstat(&self.at)?;
        let stat = rustix::fs::fstat(&link)?;
        let own = rustix::process::geteuid().as_raw();
        if let Some(uid) = controlled_by(&stat, &around, own) {
            let owner = uid.map_or_else(|| "every user".to_owned(), users::describe);
            return Err(PathError::Link(self.path.join(name), owner));
        }
        let is_procfs = rustix::fs::fstatfs(&link).is_ok_and(|stat| stat.f_type.cast_unsigned() == PROCFS);
        if is_procfs {
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            return Ok(Some(rustix::fs::openat(&self.at, name, flags, Mode::empty())?));
        }
        let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        if target.is_absolute() {
            self.at = open_at(CWD, OsStr::new("/"), OFlags::DIRECTORY)?;
            self.path = PathBuf::from("/");
        }
        self.put_before(&target);
        Ok(None)
    }

    fn put_before(&mut self, path: &Path) {
        let names = path.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        for (at, name) in names.enumerate() {
            self.rest.insert(at, name);
        }
    }
}

/// Returns the user who could have redirected a link: `None` if only root and the effective user could, `Some(None)` if
/// every user could.
fn controlled_by(link: &Stat, around: &Stat, own: u32) -> Option<Option<u32>> {
    let is_trusted = |uid: u32| uid == own || users::is_roots(uid);
    let is_open = around.st_mode & 0o002 != 0 && around.st_mode & 0o1000 == 0;
    match () {
        () if !is_trusted(link.st_uid) => Some(Some(link.st_uid)),
        () if !is_trusted(around.st_uid) => Some(Some(around.st_uid)),
        () if is_open => Some(None),
        () => None,
    }
}

fn open_at(directory: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

fn is_link(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
