//! Reads a directory that other users can write to. It opens each directory separately and follows no link out of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Non-blocking, so that a pipe without a writer does not hang the program.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

pub(crate) struct Tree {
    directory: OwnedFd,
}

pub(crate) struct Entry {
    /// The names of this program's files are UTF-8; other names are shown lossily.
    pub(crate) name: String,
    pub(crate) kind: FileType,
    pub(crate) size: u64,
}

impl Tree {
    /// Opens the directory that the user named. It may be a link, but not another user's.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let opened = tollgate_os::paths::Directory::open(directory)?;
        Ok(Self { directory: rustix::fs::openat(&opened, ".", DIRECTORY, Mode::empty())? })
    }

    pub(crate) fn child(&self, name: &str) -> io::Result<Self> {
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        Ok(Self { directory: rustix::fs::openat(&self.directory, name, flags, Mode::empty())? })
    }

    /// Returns its entries, sorted by name.
    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            // Another process has removed the entry meanwhile.
            let Ok(stat) = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            entries.push(Entry {
                name: OsStr::from_bytes(name.to_bytes()).to_string_lossy().into_owned(),
                kind: FileType::from_raw_mode(stat.st_mode),
                size: u64::try_from(stat.st_size).unwrap_or(0),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn file(&self, path: &str) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let parent = parent.as_ref().unwrap_or(self);
        let file =
            File::from(rustix::fs::openat(&parent.directory, name, FILE | OFlags::NOFOLLOW, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        Ok(file)
    }

    /// Reads a regular file, up to `most` + 1 bytes.
    pub(crate) fn read(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(path)?.take(most + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn parent<'a>(&self, path: &'a str) -> io::Result<(Option<Self>, &'a str)> {
        let Some((directories, name)) = path.rsplit_once('/') else { return Ok((None, path)) };
        let mut parent: Option<Self> = None;
        for directory in directories.split('/') {
            parent = Some(parent.as_ref().unwrap_or(self).child(directory)?);
        }
        Ok((parent, name))
    }
}
