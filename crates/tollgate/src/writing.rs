//! Writing a file so that it is there whole or not at all, whenever the program is killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// About what a short run takes: with less room than this, keeping one would most likely fail at the end.
const ROOM: usize = 256 << 10;
const MODE: Mode = Mode::from_raw_mode(0o644);

/// Whether a file that is there already may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Replace it.
    Replace,
    /// Leave it: `AlreadyExists`.
    Keep,
}

/// Whether files can be made in `directory`, and whether there is some room. Leaves nothing behind.
///
/// # Errors
/// Whatever a later [`write_whole`] would run into.
pub fn try_out(directory: &Path) -> io::Result<()> {
    let directory = open_directory(directory)?;
    let mut staged = Staged::begin(directory.as_fd(), OsStr::new("try"))?;
    staged.file.write_all(&vec![0; ROOM])
}

/// Writes a file: its bytes are on the disk under no name, or under one that nobody looks for, before
/// they get the name that was asked for. A device or pipe, which holds nothing, is written as it is.
///
/// # Errors
/// As the file system says; then there is no new file, and an old one is untouched.
pub fn write_whole(path: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    write_as(path, existing, Until::Durable, |file| file.write_all(bytes))
}

/// The same without waiting for the disk: after a power cut the file may be there and cut off. Waiting takes as long as whatever
/// else was written to this file system just before, which a followed command may have filled.
///
/// # Errors
/// As [`write_whole`].
pub fn write_soon(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    write_as(path, existing, Until::Written, write)
}

/// How far a file has come when its writer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// In the kernel's hands.
    Written,
    /// On the disk, and its name as well.
    Durable,
}

fn write_as(
    path: &Path,
    existing: Existing,
    until: Until,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    // What a link points to is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if is_stream(path) {
        return write(&mut open_stream(path)?);
    }
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let directory = open_directory(parent(path))?;
    let mut staged = Staged::begin(directory.as_fd(), name)?;
    if let Ok(old) = fs::metadata(path) {
        // Who may read it was decided by whoever made the old one.
        staged.file.set_permissions(old.permissions())?;
    }
    write(&mut staged.file)?;
    if until == Until::Durable {
        staged.file.sync_all()?;
    }
    staged.publish(name, existing)?;
    if until == Until::Durable {
        // The name too is to survive a power cut; where the directory cannot be synced, the file is still whole.
        let _ = directory.sync_all();
    }
    Ok(())
}

/// The directory that a file is in.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Whether it is a device, a pipe or a socket: something that bytes go into and that is never replaced.
pub fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
    })
}

/// A pipe that nobody reads is an error; waiting for a reader could take for ever.
fn open_stream(path: &Path) -> io::Result<File> {
    let at_once = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, at_once, Mode::empty())?);
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

fn open_directory(directory: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(directory, flags, Mode::empty())?))
}

/// A file that does not have its name yet. Dropped without one, it is gone.
struct Staged<'a> {
    directory: rustix::fd::BorrowedFd<'a>,
    file: File,
    /// Where the file system has no unnamed files.
    temporary: Option<OsString>,
}

impl<'a> Staged<'a> {
    fn begin(directory: rustix::fd::BorrowedFd<'a>, name: &OsStr) -> io::Result<Self> {
        let unnamed = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        if can_be_linked()
            && let Ok(file) = rustix::fs::openat(directory, ".", unnamed, MODE)
        {
            return Ok(Self { directory, file: File::from(file), temporary: None });
        }
        let temporary = temporary_name(name);
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(directory, &temporary, new, MODE)?);
        Ok(Self { directory, file, temporary: Some(temporary) })
    }

    /// Gives the file its name.
    fn publish(&mut self, name: &OsStr, existing: Existing) -> io::Result<()> {
        if self.temporary.is_none() {
            match (self.link(name), existing) {
                (Err(error), Existing::Replace) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // A link cannot replace; a rename can.
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
                // The temporary name goes when this is dropped.
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return Err(Errno::EXIST.into()),
                // No links on this file system: rename, which replaces, but ids do not repeat.
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

/// An unnamed file gets its name through its descriptor's entry here.
const DESCRIPTORS: &str = "/proc/self/fd";

fn can_be_linked() -> bool {
    Path::new(DESCRIPTORS).is_dir()
}

/// A name that no run has: they do not begin with a dot.
fn temporary_name(name: &OsStr) -> OsString {
    let mut temporary = OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{:08x}.tmp", random()));
    temporary
}

/// Four bytes from the kernel; where it gives none, the process's number is at least its own.
pub fn random() -> u32 {
    let mut bytes = [0; 4];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(4) => u32::from_ne_bytes(bytes),
        _ => std::process::id(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> = fs::read_dir(directory)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_written_and_replaced_and_nothing_else_is_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("run.json");
        write_whole(&file, b"one", Existing::Replace).expect("written");
        write_whole(&file, b"two", Existing::Replace).expect("replaced");
        assert_eq!(fs::read(&file).expect("read"), b"two");
        let refused = write_whole(&file, b"three", Existing::Keep).expect_err("there already");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).expect("read"), b"two");
        assert_eq!(names(directory.path()), ["run.json"]);
    }

    #[test]
    fn a_named_temporary_is_gone_either_way() {
        let directory = tempfile::tempdir().expect("a directory");
        let descriptor = open_directory(directory.path()).expect("open");
        let stage = |bytes: &[u8]| {
            let temporary = temporary_name(OsStr::new("run.json"));
            let mut file = File::create_new(directory.path().join(&temporary)).expect("made");
            file.write_all(bytes).expect("written");
            Staged { directory: descriptor.as_fd(), file, temporary: Some(temporary) }
        };
        drop(stage(b"never"));
        assert!(names(directory.path()).is_empty());
        stage(b"one").publish(OsStr::new("run.json"), Existing::Keep).expect("new");
        stage(b"two").publish(OsStr::new("run.json"), Existing::Keep).expect_err("there already");
        assert_eq!(fs::read(directory.path().join("run.json")).expect("read"), b"one");
        stage(b"two").publish(OsStr::new("run.json"), Existing::Replace).expect("replaced");
        assert_eq!(fs::read(directory.path().join("run.json")).expect("read"), b"two");
        assert_eq!(names(directory.path()), ["run.json"]);
    }

    #[test]
    fn a_link_is_followed_and_a_device_is_written_not_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        write_whole(&link, b"new", Existing::Replace).expect("written");
        assert_eq!(fs::read(&file).expect("read"), b"new");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, MODE, 0).expect("a pipe");
        write_whole(&pipe, b"lost", Existing::Replace).expect_err("nobody reads it");
        write_whole(Path::new("/dev/null"), b"gone", Existing::Replace).expect("written");
        assert!(is_stream(Path::new("/dev/null")), "the device was replaced");
    }

    #[test]
    fn trying_out_leaves_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        try_out(directory.path()).expect("writable");
        assert!(names(directory.path()).is_empty());
        assert!(try_out(&directory.path().join("absent")).is_err());
    }
}
