//! Writes files so that each is there whole or not at all, whenever the program is killed, and so that no other user can choose
//! which file that is: each path goes through [`tollgate_os::paths`].

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use tollgate_model::text::plainly;
use tollgate_os::paths::{Directory, Output, open_stream};

/// About the size of a short run. With less free space, keeping one would most likely fail at the end.
const ROOM: usize = 256 << 10;
/// The mode of a new file that others may read, before the umask.
pub const SHARED: Mode = Mode::from_raw_mode(0o666);
/// The mode of a kept run: command lines in it may hold secrets.
pub const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// The most entries of a directory to search for the remains of a killed program.
const MAX_LOOK: usize = 1 << 16;

/// Whether to replace an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    Replace,
    /// Leave it and fail with `AlreadyExists`.
    Keep,
}

/// Checks that files can be made in `directory` and that it has some room. It leaves no file.
///
/// # Errors
/// The errors of a later [`write_in`].
pub fn try_out(directory: &Directory) -> io::Result<()> {
    let mut staged = Staged::begin(directory, OsStr::new("try"), PRIVATE)?;
    staged.file.write_all(&vec![0; ROOM])
}

/// Why a file cannot be written: a clause without a subject.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The path is a directory.
    #[error("is a directory; name a file in it")]
    Directory,
    /// The path ends in `..`, or is empty.
    #[error("does not name a file")]
    Nameless,
    /// The parent directory does not exist.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// The path goes through another user's link or file, or cannot be followed.
    #[error("{}", plainly(.0))]
    Path(io::Error),
    /// The file exists, and cannot be written.
    #[error("cannot be written: {}", plainly(.0))]
    File(io::Error),
    /// The directory has no room, or cannot be written.
    #[error("{} is not writable: {}", .0.display(), plainly(.1))]
    Room(PathBuf, io::Error),
}

impl Refusal {
    fn of_path(path: &Path) -> Option<Self> {
        if path.is_dir() {
            return Some(Self::Directory);
        }
        path.file_name().is_none().then_some(Self::Nameless)
    }

    fn of_search(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NoDirectory(parent(path).to_owned()),
            _ => Self::Path(error),
        }
    }

    /// Returns a sentence that names the file.
    pub fn about(&self, file: &Path) -> String {
        match self {
            Self::NoDirectory(_) => self.to_string(),
            Self::Directory | Self::Nameless => format!("{} {self}", file.display()),
            _ => format!("{}: {self}", file.display()),
        }
    }

    /// Returns the refusal for the error of a write.
    pub fn of_write(path: &Path, error: io::Error) -> Self {
        Self::of_path(path).unwrap_or_else(|| Self::of_search(path, error))
    }
}

/// Checks that [`write_whole`] could write a file now, without changing anything.
///
/// # Errors
/// Those of [`write_whole`].
pub fn check(path: &Path) -> Result<(), Refusal> {
    if let Some(refusal) = Refusal::of_path(path) {
        return Err(refusal);
    }
    let output = Output::find(path).map_err(|error| Refusal::of_search(path, error.into()))?;
    let Output::File { directory, name, .. } = &output else { return Ok(()) };
    if rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        rustix::fs::accessat(directory, name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|error| Refusal::File(error.into()))?;
    }
    try_out(directory).map_err(|error| Refusal::Room(directory.path().to_owned(), error))
}

/// Writes a file. Its bytes reach the disk under no name or a temporary one before they get the final name. A device or pipe,
/// which holds nothing, is written directly.
///
/// The umask decides who may read a new file. A replacement of a file of the effective user gets its permission bits, without
/// those for execution, set-user-ID and set-group-ID.
///
/// # Errors
/// Those of the file system, or [`tollgate_os::paths::PathError`]. Then there is no new file, and an old one is unchanged.
pub fn write_whole(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    write_as(path, existing, Until::Durable, |file| file.write_all(bytes))
}

/// Like [`write_whole`] without waiting for the disk: after a power cut the file may be truncated. Waiting takes as long as
/// writing back everything recent on this file system, which a traced command may have filled.
///
/// # Errors
/// See [`write_whole`].
pub fn write_soon(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    write_as(path, existing, Until::Written, write)
}

/// Writes a file with this mode, before the umask, in an open directory. It replaces a file or link of that name, never following it.
///
/// # Errors
/// See [`write_whole`].
pub fn write_in(
    directory: &Directory,
    name: &OsStr,
    bytes: &[u8],
    existing: Existing,
    until: Until,
    mode: Mode,
) -> io::Result<()> {
    put(directory, name, existing, until, (mode, None), |file| file.write_all(bytes))
}

/// How safe a file is when its writer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// In the kernel's page cache.
    Written,
    /// On the disk, with its name.
    Durable,
}

fn write_as(
    path: &Path,
    existing: Existing,
    until: Until,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    match Output::find(path)? {
        Output::Stream { directory, name, is_descriptor } => {
            write(&mut open_stream(&directory, &name, is_descriptor)?)
        }
        Output::File { directory, name, mode: old } => {
            put(&directory, &name, existing, until, (SHARED, old), write)
        }
    }
}

/// `mode` is that of a new file, and that of the replaced file if the new one inherits it.
pub(crate) fn put(
    directory: &Directory,
    name: &OsStr,
    existing: Existing,
    until: Until,
    (mode, old): (Mode, Option<Mode>),
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut staged = Staged::begin(directory, name, mode)?;
    if let Some(old) = old {
        rustix::fs::fchmod(&staged.file, old)?;
    }
    write(&mut staged.file)?;
    if until == Until::Durable {
        staged.file.sync_all()?;
    }
    staged.publish(name, existing)?;
    if until == Until::Durable {
        // The name must survive a power cut too. If the directory cannot be synced, the file is still whole.
        directory.sync();
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A file without its final name. Dropping it before then removes it.
struct Staged<'a> {
    directory: &'a Directory,
    file: File,
    /// For file systems without unnamed files.
    temporary: Option<OsString>,
}

impl<'a> Staged<'a> {
    fn begin(directory: &'a Directory, name: &OsStr, mode: Mode) -> io::Result<Self> {
        let unnamed = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        if can_be_linked()
            && let Ok(file) = rustix::fs::openat(directory, ".", unnamed, mode)
        {
            return Ok(Self { directory, file: File::from(file), temporary: None });
        }
        sweep(directory, name);
        let temporary = temporary_name(name);
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(rustix::fs::openat(directory, &temporary, new, mode)?);
        let staged = Self { directory, file, temporary: Some(temporary) };
        staged.lock();
        Ok(staged)
    }

    /// Holds a lock while the file has its temporary name. A free lock shows that the writer has exited.
    fn lock(&self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive);
    }

    fn publish(&mut self, name: &OsStr, existing: Existing) -> io::Result<()> {
        if self.temporary.is_none() {
            match (self.link(name), existing) {
                (Err(error), Existing::Replace) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link cannot replace a file; a rename can.
                    sweep(self.directory, name);
                    self.lock();
                    let temporary = temporary_name(name);
                    self.link(&temporary)?;
                    self.temporary = Some(temporary);
                }
                (outcome, _) => return outcome,
            }
        }
        let Some(temporary) = &self.temporary else { return Ok(()) };
        if existing == Existing::Keep {
            match rustix::fs::linkat(self.directory, temporary, self.directory, name, AtFlags::empty()) {
                // Dropping this removes the temporary name.
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return Err(Errno::EXIST.into()),
                // This file system has no links. A rename would replace a file, but ids do not repeat.
                Err(_) => {}
            }
        }
        rustix::fs::renameat(self.directory, temporary, self.directory, name)?;
        self.temporary = None;
        Ok(())
    }

    fn link(&self, name: &OsStr) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let own = format!("{DESCRIPTORS}/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, own, self.directory, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = rustix::fs::unlinkat(self.directory, temporary, AtFlags::empty());
        }
    }
}

/// linkat(2) names an unnamed file through its descriptor's entry here.
const DESCRIPTORS: &str = "/proc/self/fd";

fn can_be_linked() -> bool {
    Path::new(DESCRIPTORS).is_dir()
}

/// Removes what a killed writer of this name left: unlocked files of the effective user named as [`temporary_name`] does.
fn sweep(directory: &Directory, name: &OsStr) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(readable) = rustix::fs::openat(directory, ".", flags, Mode::empty()) else { return };
    let Ok(entries) = Dir::read_from(&readable) else { return };
    for entry in entries.take(MAX_LOOK).filter_map(Result::ok) {
        if is_temporary(entry.file_name().to_bytes(), name.as_encoded_bytes()) {
            remove_left(directory, entry.file_name());
        }
    }
}

fn remove_left(directory: &Directory, name: &std::ffi::CStr) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return };
    let is_own = rustix::fs::fstat(&file).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw()
    });
    if is_own && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
        let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
    }
}

/// Whether it has the form `.NAME.XXXXXXXX.tmp`.
fn is_temporary(entry: &[u8], name: &[u8]) -> bool {
    let middle = entry.strip_prefix(b".").and_then(|rest| rest.strip_prefix(name));
    let digits = middle.and_then(|rest| rest.strip_prefix(b".")).and_then(|rest| rest.strip_suffix(b".tmp"));
    digits.is_some_and(|digits| digits.len() == 8 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// No run has this name, because runs' names do not begin with a dot.
fn temporary_name(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{:08x}.tmp", random()));
    temporary
}

/// Returns four random bytes from the kernel, or the process ID if the kernel gives none.
pub fn random() -> u32 {
    let mut bytes = [0; 4];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(4) => u32::from_ne_bytes(bytes),
        _ => std::process::id(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    /// A user that need not exist.
    const OTHER: u32 = 54_321;

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> = fs::read_dir(directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    }

    fn opened(directory: &tempfile::TempDir) -> Directory {
        Directory::open(directory.path()).expect("open")
    }

    fn is_root() -> bool {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root {
            println!("skipped: needs root (to make what another user owns)");
        }
        is_root
    }

    #[test]
    fn a_file_is_written_and_replaced_and_nothing_else_is_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("run.json");
        write_whole(&file, b"one", Existing::Replace).expect("written");
        write_whole(&file, b"two", Existing::Replace).expect("replaced");
        assert_eq!(fs::read(&file).expect("read"), b"two");
        let refused = write_whole(&file, b"three", Existing::Keep).expect_err("already exists");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).expect("read"), b"two");
        assert_eq!(names(directory.path()), ["run.json"]);
    }

    #[test]
    fn a_named_temporary_is_gone_either_way() {
        let directory = tempfile::tempdir().expect("a directory");
        let descriptor = opened(&directory);
        let stage = |bytes: &[u8]| {
            let temporary = temporary_name(OsStr::new("run.json"));
            let mut file = File::create_new(directory.path().join(&temporary)).expect("made");
            file.write_all(bytes).expect("written");
            Staged { directory: &descriptor, file, temporary: Some(temporary) }
        };
        drop(stage(b"never"));
        assert!(names(directory.path()).is_empty());
        stage(b"one").publish(OsStr::new("run.json"), Existing::Keep).expect("new");
        stage(b"two").publish(OsStr::new("run.json"), Existing::Keep).expect_err("already exists");
        assert_eq!(fs::read(directory.path().join("run.json")).expect("read"), b"one");
        stage(b"two").publish(OsStr::new("run.json"), Existing::Replace).expect("replaced");
        assert_eq!(fs::read(directory.path().join("run.json")).expect("read"), b"two");
        assert_eq!(names(directory.path()), ["run.json"]);
    }

    #[test]
    fn what_a_killed_writer_left_goes_and_what_is_being_written_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = [".run.json.0123abcd.tmp", ".run.json.0123abcx.tmp", ".other.json.0123abcd.tmp"];
        for name in left {
            fs::write(directory.path().join(name), "left").expect("written");
        }
        let used = File::create(directory.path().join(".run.json.89abcdef.tmp")).expect("made");
        rustix::fs::flock(&used, FlockOperation::NonBlockingLockExclusive).expect("locked");
        sweep(&opened(&directory), OsStr::new("run.json"));
        let mut kept = vec![left[1], left[2], ".run.json.89abcdef.tmp"];
        kept.sort_unstable();
        assert_eq!(names(directory.path()), kept);
    }

    #[test]
    fn a_link_of_ones_own_is_followed_and_a_device_is_written_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").expect("written");
        symlink(&file, &link).expect("linked");
        write_whole(&link, b"new", Existing::Replace).expect("written");
        assert_eq!(fs::read(&file).expect("read"), b"new");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, SHARED, 0).expect("a pipe");
        write_whole(&pipe, b"lost", Existing::Replace).expect_err("the pipe has no reader");
        write_whole(Path::new("/dev/null"), b"gone", Existing::Replace).expect("written");
        assert!(!fs::metadata("/dev/null").expect("there").is_file(), "the device was replaced");
    }

    #[test]
    fn a_descriptor_of_ones_own_is_written_through_proc() {
        use std::os::fd::AsRawFd;
        let (reader, writer) = io::pipe().expect("a pipe");
        let path = format!("/dev/fd/{}", writer.as_raw_fd());
        write_whole(Path::new(&path), b"through", Existing::Replace).expect("written");
        drop(writer);
        assert_eq!(io::read_to_string(reader).expect("read"), "through");
    }

    #[test]
    fn permission_bits_of_ones_own_file_are_kept_without_the_dangerous_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        for (before, after) in [(0o6777, 0o666), (0o4755, 0o644), (0o600, 0o600), (0o2640, 0o640)] {
            fs::write(&file, "old").expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(before)).expect("set");
            write_whole(&file, b"new", Existing::Replace).expect("replaced");
            assert_eq!(fs::metadata(&file).expect("there").mode() & 0o7777, after, "{before:o}");
        }
    }

    #[test]
    fn another_users_file_gives_nothing_to_the_new_one() {
        if !is_root() {
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        chown(directory.path(), Some(OTHER), Some(OTHER)).expect("given away");
        let (file, second) = (directory.path().join("file"), directory.path().join("second"));
        fs::write(&file, "theirs").expect("written");
        fs::hard_link(&file, &second).expect("linked");
        chown(&file, Some(OTHER), Some(OTHER)).expect("given away");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o6777)).expect("set");
        write_whole(&file, b"root's", Existing::Replace).expect("replaced");
        let written = fs::metadata(&file).expect("there");
        assert_eq!((written.uid(), written.mode() & 0o7133), (0, 0), "{:o}", written.mode());
        assert_eq!(fs::read(&second).expect("read"), b"theirs", "the other name still has the old file");
    }

    #[test]
    fn links_of_another_user_are_refused_and_nothing_changes() {
        if !is_root() {
            return;
        }
        let place = tempfile::tempdir().expect("a directory");
        let precious = place.path().join("precious");
        fs::create_dir(&precious).expect("made");
        fs::write(precious.join("file"), "root's").expect("written");
        let theirs = place.path().join("theirs");
        fs::create_dir(&theirs).expect("made");
        let links =
            [("file", precious.join("file")), ("new", precious.join("new")), ("way", precious.clone())];
        for (name, target) in &links {
            symlink(target, theirs.join(name)).expect("linked");
            std::os::unix::fs::lchown(theirs.join(name), Some(OTHER), Some(OTHER)).expect("given away");
        }
        let refuses = |path: &Path| {
            let error = write_whole(path, b"escaped", Existing::Replace).expect_err("refused").to_string();
            assert!(error.contains("symbolic link") && error.contains("54321"), "{error}");
            assert_eq!(check(path).expect_err("refused beforehand").to_string(), error);
        };
        // Another user's link in root's directory; then the same in a directory of the other user, where root's links count too.
        for round in 0..2 {
            refuses(&theirs.join("file"));
            refuses(&theirs.join("new"));
            refuses(&theirs.join("way/new"));
            if round == 0 {
                chown(&theirs, Some(OTHER), Some(OTHER)).expect("given away");
                symlink(&precious, theirs.join("roots")).expect("linked");
            }
        }
        refuses(&theirs.join("roots/new"));
        assert_eq!(names(&precious), ["file"]);
        assert_eq!(fs::read(precious.join("file")).expect("read"), b"root's");
        // Without a link, their directory is written like any other.
        write_whole(&theirs.join("plain"), b"x", Existing::Replace).expect("written");
    }

    #[test]
    fn in_a_sticky_directory_another_users_file_and_fifo_are_refused() {
        if !is_root() {
            return;
        }
        let sticky = tempfile::tempdir().expect("a directory");
        fs::set_permissions(sticky.path(), fs::Permissions::from_mode(0o1777)).expect("set");
        let (file, fifo) = (sticky.path().join("file"), sticky.path().join("fifo"));
        fs::write(&file, "theirs").expect("written");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, SHARED, 0).expect("a pipe");
        for path in [&file, &fifo] {
            chown(path, Some(OTHER), Some(OTHER)).expect("given away");
            let error = write_whole(path, b"escaped", Existing::Replace).expect_err("refused").to_string();
            assert!(error.contains("54321"), "{error}");
        }
        assert_eq!(fs::read(&file).expect("read"), b"theirs");
        assert_eq!(fs::metadata(&file).expect("there").uid(), OTHER);
    }

    #[test]
    fn trying_out_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        try_out(&opened(&directory)).expect("writable");
        check(&directory.path().join("new")).expect("writable");
        assert!(names(directory.path()).is_empty());
        let why = check(&directory.path().join("absent/new")).expect_err("no directory");
        assert!(matches!(why, Refusal::NoDirectory(_)), "{why}");
    }
}
