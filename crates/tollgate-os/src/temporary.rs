//! A directory with a temporary name, removed when its maker ends.
//!
//! Its name has the form `.tollgate-<pid>-<16 hexadecimal digits>`. Its maker holds an exclusive flock(2) on it. If the
//! lock can be taken, the maker has ended, and the next run removes the directory. It is made, used and removed through
//! descriptors.

use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{io, path::Path, time::Duration};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::paths::Directory;

/// The prefix of the names.
pub const PREFIX: &str = ".tollgate-";
/// How many entries of a directory are searched for those of a killed program.
const MAX_LOOK: usize = 1 << 16;
/// The most entries that are removed: many more than any benchmark makes.
const MAX_REMOVED: usize = 1 << 20;
/// Until its lock is held, a new directory can be mistaken for an abandoned one and be removed; then it is made again. The process
/// that removes it may be off its processor for long.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// A directory for this process alone. Dropping it removes it with its contents.
#[derive(Debug)]
pub struct Temporary {
    parent: OwnedFd,
    own: OwnedFd,
    name: String,
    stays: Cell<bool>,
}

impl Temporary {
    /// Makes one in a directory that is open for reading. Only the effective user may access it.
    ///
    /// # Errors
    /// The error of mkdirat(2); `WOULDBLOCK` if it cannot be locked.
    pub fn make(parent: impl AsFd, prefix: &str) -> Result<Self, Errno> {
        Self::named(parent, new_name(prefix)?)
    }

    /// Like [`Self::make`], with a name from [`new_name`].
    ///
    /// # Errors
    /// As [`Self::make`]; `EXIST` if the name is taken.
    pub fn named(parent: impl AsFd, name: String) -> Result<Self, Errno> {
        let parent = rustix::io::fcntl_dupfd_cloexec(parent, 0)?;
        let mut is_made = false;
        for _ in 0..ATTEMPTS {
            match rustix::fs::mkdirat(&parent, name.as_str(), Mode::RWXU) {
                Ok(()) => is_made = true,
                Err(Errno::EXIST) if is_made => {}
                Err(error) => return Err(error),
            }
            if let Some(own) = locked(&parent, &name) {
                return Ok(Self { parent, own, name, stays: Cell::new(false) });
            }
            std::thread::sleep(PAUSE);
        }
        Err(Errno::WOULDBLOCK)
    }

    /// Takes over the directories in `parent` that killed programs of this user left. Those of other users stay.
    pub fn left(parent: impl AsFd, prefix: &str) -> Vec<Self> {
        let Ok(parent) = rustix::io::fcntl_dupfd_cloexec(parent, 0) else { return Vec::new() };
        let Ok(entries) = Dir::read_from(&parent) else { return Vec::new() };
        let names = entries.take(MAX_LOOK).filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str().ok()?.to_owned();
            is_temporary(&name, prefix).then_some(name)
        });
        let taken = names.filter_map(|name| {
            let own = locked(&parent, &name)?;
            Some(Self { parent: parent.try_clone().ok()?, own, name, stays: Cell::new(false) })
        });
        taken.collect()
    }

    /// Returns its name in its parent.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Leaves it for the next run, which has to know its contents.
    pub fn leave(&self) {
        self.stays.set(true);
    }

    /// Gives it its final name, which must be free or belong to an empty directory.
    ///
    /// # Errors
    /// The error of renameat(2); `STALE` if its parent's owner has put another directory in its place.
    pub fn publish(&self, name: &OsStr) -> Result<(), Errno> {
        if !same(&self.parent, &self.name, &self.own) {
            return Err(Errno::STALE);
        }
        match rustix::fs::renameat_with(&self.parent, &self.name, &self.parent, name, RenameFlags::NOREPLACE)
        {
            Ok(()) => {}
            // The name may belong to an empty directory, which is replaced, or the file system lacks this flag.
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::renameat(&self.parent, &self.name, &self.parent, name)?;
            }
            Err(error) => return Err(error),
        }
        self.leave();
        Ok(())
    }
}

/// Uses the descriptor, since the path may lead elsewhere by now.
impl AsFd for Temporary {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.stays.get() {
            return;
        }
        let mut left = MAX_REMOVED;
        // The next run tries again to remove the rest.
        let _ = empty(self.own.as_fd(), &mut left);
        if same(&self.parent, &self.name, &self.own) {
            let _ = rustix::fs::unlinkat(&self.parent, self.name.as_str(), AtFlags::REMOVEDIR);
        }
    }
}

/// Removes a directory of any name with its contents, if its path still leads to this device and inode. Mounts in it stay,
/// and no link that another user may have made is followed.
///
/// # Errors
/// Those of openat(2) and unlinkat(2); XDEV if another file system is mounted in it.
pub fn remove(path: &Path, device: u64, inode: u64) -> io::Result<()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let is_other = |error: Errno| matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
    let parent = match Directory::open(above).map_err(io::Error::from) {
        Err(error) if Errno::from_io_error(&error).is_some_and(is_other) => return Ok(()),
        parent => parent?,
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let own = match rustix::fs::openat(&parent, name, flags, Mode::empty()) {
        Err(error) if is_other(error) => return Ok(()),
        own => own?,
    };
    let stat = rustix::fs::fstat(&own)?;
    if (stat.st_dev, stat.st_ino) != (device, inode) {
        return Ok(());
    }
    let mut left = MAX_REMOVED;
    empty(own.as_fd(), &mut left)?;
    match rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        ended => Ok(ended?),
    }
}

/// Returns a unique name for a temporary directory of this process.
///
/// # Errors
/// Those of getrandom(2).
pub fn new_name(prefix: &str) -> Result<String, Errno> {
    Ok(format!("{prefix}{}-{:016x}", std::process::id(), random()?))
}

fn is_temporary(name: &str, prefix: &str) -> bool {
    let parts = name.strip_prefix(prefix).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, random)| {
        let digits = !pid.is_empty() && pid.len() <= 10 && pid.bytes().all(|byte| byte.is_ascii_digit());
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        digits && random.len() == 16 && random.bytes().all(hexadecimal)
    })
}

/// Opens and locks the directory `name`, if it is accessible to this user alone and no process holds its lock.
fn locked(parent: &OwnedFd, name: &str) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let own = rustix::fs::openat(parent, name, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&own).ok()?;
    let is_ours = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o077 == 0;
    if !is_ours {
        return None;
    }
    rustix::fs::flock(&own, FlockOperation::NonBlockingLockExclusive).ok()?;
    // It may have been removed or exchanged before it was locked.
    same(parent, name, &own).then_some(own)
}

fn same(parent: &OwnedFd, name: &str, own: &OwnedFd) -> bool {
    let id = |stat: Stat| (stat.st_dev, stat.st_ino);
    let named = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(id);
    let opened = rustix::fs::fstat(own).map(id);
    matches!((named, opened), (Ok(named), Ok(opened)) if named == opened)
}

/// Removes the contents of a directory, except mounts and the targets of links. Nested directories are moved up first, so
/// only two are open at a time however deep they are.
fn empty(root: BorrowedFd<'_>, left: &mut usize) -> Result<(), Errno> {
    let mut moved = 0_u64;
    loop {
        let names = some_names(root)?;
        if names.is_empty() {
            return Ok(());
        }
        for (name, kind) in names {
            if is_removed(root, &name, kind, left)? {
                continue;
            }
            let inner = beneath(root, &name)?;
            loop {
                let names = some_names(inner.as_fd())?;
                if names.is_empty() {
                    break;
                }
                for (name, kind) in names {
                    if !is_removed(inner.as_fd(), &name, kind, left)? {
                        move_up(inner.as_fd(), &name, root, &mut moved)?;
                    }
                }
            }
            rustix::fs::unlinkat(root, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

/// Returns some names in a directory with their types; an empty list if it is empty.
fn some_names(directory: BorrowedFd<'_>) -> Result<Vec<(CString, FileType)>, Errno> {
    const SOME: usize = 1024;
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name != c"." && name != c".." {
            names.push((name.to_owned(), entry.file_type()));
        }
        if names.len() == SOME {
            break;
        }
    }
    Ok(names)
}

/// Removes an entry that is not a directory, and returns whether it did.
fn is_removed(
    directory: BorrowedFd<'_>,
    name: &CStr,
    kind: FileType,
    left: &mut usize,
) -> Result<bool, Errno> {
    *left = left.checked_sub(1).ok_or(Errno::TOOBIG)?;
    if kind == FileType::Directory {
        return Ok(false);
    }
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves a directory to another one of the same mount, under a number that is free there.
fn move_up(from: BorrowedFd<'_>, name: &CStr, to: BorrowedFd<'_>, moved: &mut u64) -> Result<(), Errno> {
    loop {
        *moved += 1;
        match rustix::fs::renameat(from, name, to, format!("{moved}")) {
            // The number is taken. An empty directory would have been replaced.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            ended => return ended,
        }
    }
}

fn beneath(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve) {
        // Before Linux 5.6, or filtered.
        Err(Errno::NOSYS | Errno::PERM) => {}
        answer => return answer,
    }
    let inner = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    if rustix::fs::fstat(&inner)?.st_dev == rustix::fs::fstat(directory)?.st_dev {
        Ok(inner)
    } else {
        Err(Errno::XDEV)
    }
}

fn random() -> Result<u64, Errno> {
    let mut bytes = [0; 8];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())? {
        8 => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(Errno::IO),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use proptest::prelude::*;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn it_goes_when_it_is_dropped_and_stays_when_it_is_published() {
        let root = tempfile::tempdir().unwrap();
        let parent = File::open(root.path()).unwrap();
        let made = Temporary::make(&parent, PREFIX).unwrap();
        fs::create_dir_all(root.path().join(made.name()).join("a/b")).unwrap();
        drop(made);
        assert!(names(root.path()).is_empty());
        for round in 0..2 {
            let made = Temporary::make(&parent, PREFIX).unwrap();
            fs::write(root.path().join(made.name()).join("file"), "x").unwrap();
            let published = made.publish(OsStr::new("named"));
            // A nonempty directory of that name stays.
            assert_eq!(published.is_ok(), round == 0, "{published:?}");
            assert!(root.path().join("named/file").exists());
            drop(made);
            assert_eq!(names(root.path()), ["named"]);
        }
    }

    #[test]
    fn it_goes_however_deep_directories_lie_in_it() {
        let root = tempfile::tempdir().unwrap();
        let parent = File::open(root.path()).unwrap();
        let made = Temporary::make(&parent, PREFIX).unwrap();
        // Two directories at each depth, with a file and with names that are taken.
        let mut at: OwnedFd = File::open(root.path().join(made.name())).unwrap().into();
        for depth in 0..3000 {
            for name in ["1", "deep"] {
                rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
            rustix::fs::openat(&at, format!("{}", depth + 2), flags, Mode::RUSR | Mode::WUSR).unwrap();
            at = beneath(at.as_fd(), c"deep").unwrap();
        }
        drop(at);
        drop(made);
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn one_that_was_exchanged_is_not_published() {
        let root = tempfile::tempdir().unwrap();
        let parent = File::open(root.path()).unwrap();
        let made = Temporary::make(&parent, PREFIX).unwrap();
        fs::rename(root.path().join(made.name()), root.path().join("aside")).unwrap();
        fs::create_dir(root.path().join(made.name())).unwrap();
        assert_eq!(made.publish(OsStr::new("named")), Err(Errno::STALE));
        assert!(!root.path().join("named").exists());
    }

    #[test]
    fn what_a_killed_maker_left_is_taken_and_what_is_held_is_not() {
        let root = tempfile::tempdir().unwrap();
        let parent = File::open(root.path()).unwrap();
        let made = Temporary::make(&parent, PREFIX).unwrap();
        let left = Temporary::make(&parent, PREFIX).unwrap();
        left.leave();
        drop(left);
        assert_eq!(Temporary::left(&parent, PREFIX).len(), 1);
        assert_eq!(names(root.path()), [made.name()]);
    }

    proptest! {
        #[test]
        fn only_names_of_that_form_are_taken(pid: u32, random: u64, name in "\\PC{0,40}") {
            let own = format!("{PREFIX}{pid}-{random:016x}");
            prop_assert!(is_temporary(&own, PREFIX));
            let form = format!("{PREFIX}{name}");
            if is_temporary(&form, PREFIX) {
                let (pid, random) = name.split_once('-').unwrap();
                prop_assert!(pid.bytes().all(|byte| byte.is_ascii_digit()) && random.len() == 16);
            }
        }
    }
}
