//! Captures a tree with copies of the files that facts are read from, for [`Machine::open`] elsewhere. It is written under a
//! temporary name and renamed when it is complete.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::{fs::File, os::fd::OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use tollgate_os::paths::Directory;
use tollgate_os::temporary::{PREFIX, Temporary};

use crate::machine::Machine;
use crate::record::{CapturedRecord, NAME};
use crate::recorder::{Recording, Seen};
use crate::tree::{MAX_LINKS, parts};
use crate::{kernel, kernel_base, registry};

/// The content of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured {
    /// Files that were copied.
    pub files: usize,
    /// Bytes of these files.
    pub bytes: u64,
    /// Paths that could not be read, which is recorded too.
    pub failed: usize,
    /// Calls whose answers were recorded.
    pub calls: usize,
}

/// Why there is no capture. Each is a clause after the directory's name.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// A directory that is not empty is there.
    #[error("already exists and is not empty; name a new directory")]
    NotEmpty,
    /// A symbolic link is there.
    #[error("is a symbolic link; name the new directory itself")]
    Link,
    /// A file is there, or the name is not valid.
    #[error("is not a name for a new directory")]
    NoDirectory,
    /// It could not be written; nothing is left.
    #[error("cannot be written: {}", tollgate_model::text::plainly(.0))]
    Unwritable(#[from] io::Error),
    /// The caller asked to stop; nothing is left.
    #[error("was not written: interrupted")]
    Interrupted,
}

/// Reads every fact of this machine and of the file system under `directory`, and stores everything that was read in the new
/// directory `target`. `stop` is checked between files.
///
/// # Errors
/// See [`CaptureError`]; then nothing is left.
pub fn capture(directory: &Path, target: &Path, stop: &dyn Fn() -> bool) -> Result<Captured, CaptureError> {
    let vacant = Vacant::find(target)?;
    let (machine, recorder) = Machine::here().recorded();
    registry::read_facts(&machine);
    registry::strain(&machine, "now");
    registry::storage(&machine, directory);
    for_questions(&machine);
    let recording = recorder.recording();
    let record = CapturedRecord::new(&recording, machine.leaves().ok(), directory);
    let staged = Staged::begin(&vacant)?;
    let captured = staged.fill(&recording, &record, stop)?;
    staged.publish(&vacant.name)?;
    Ok(captured)
}

/// The files that `inspect kernel` and `inspect config` read beyond the facts.
fn for_questions(machine: &Machine) {
    let _ = kernel_base::kernel_base(machine);
    let _ = kernel::command_line_text(machine);
}

struct Vacant {
    parent: OwnedFd,
    name: OsString,
}

impl Vacant {
    fn find(target: &Path) -> Result<Self, CaptureError> {
        if !matches!(target.components().next_back(), Some(Component::Normal(_))) {
            return Err(CaptureError::NoDirectory);
        }
        let Some(name) = target.file_name() else { return Err(CaptureError::NoDirectory) };
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = Directory::open(parent).map_err(io::Error::from)?;
        match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(io::Error::from(error).into()),
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if is_empty(&parent.inner(name).map_err(io::Error::from)?)? => {}
                FileType::Directory => return Err(CaptureError::NotEmpty),
                FileType::Symlink => return Err(CaptureError::Link),
                _ => return Err(CaptureError::NoDirectory),
            },
        }
        let parent = readable(&parent)?;
        Ok(Self { parent, name: name.to_owned() })
    }
}

fn is_empty(directory: &Directory) -> io::Result<bool> {
    let entries = Dir::new(readable(directory)?)?;
    let names = entries.filter_map(Result::ok);
    Ok(names.filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b"..")).count() == 0)
}

fn readable(directory: &Directory) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, ".", flags, Mode::empty())?)
}

/// A tree that does not have its name yet. Dropping it without one removes it.
///
/// Only its owner has access, since it may hold files that only root may read. The directory above may belong to another user,
/// who can rename it; so it is filled through its descriptor.
struct Staged {
    own: Temporary,
    root: Directory,
}

impl Staged {
    /// Begins next to its future name, and removes what killed captures left there.
    fn begin(vacant: &Vacant) -> io::Result<Self> {
        drop(Temporary::left(&vacant.parent, PREFIX));
        let own = Temporary::make(&vacant.parent, PREFIX)?;
        let root = Directory::new(&own, Path::new(own.name())).map_err(io::Error::from)?;
        Ok(Self { own, root })
    }

    fn fill(
        &self,
        recording: &Recording,
        record: &CapturedRecord,
        stop: &dyn Fn() -> bool,
    ) -> Result<Captured, CaptureError> {
        let layout = Layout::of(recording);
        let mut bytes = 0;
        for (path, item) in &layout.items {
            if stop() {
                return Err(CaptureError::Interrupted);
            }
            let (parent, name) = self.entry(path)?;
            match item {
                Item::Link(target) => {
                    rustix::fs::symlinkat(*target, &parent, name).map_err(io::Error::from)?
                }
                Item::File(content) => {
                    write(&parent, name, content)?;
                    bytes += content.len() as u64;
                }
            }
        }
        // Only its existence is known; it may have become a directory by now.
        for path in &layout.there {
            let (parent, name) = self.entry(path)?;
            if rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_err() {
                write(&parent, name, b"")?;
            }
        }
        for path in &layout.directories {
            self.root.below(path, Mode::RWXU).map_err(io::Error::from)?;
        }
        write(&self.root, OsStr::new(NAME), &record.to_json().map_err(io::Error::other)?)?;
        let files = layout.items.values().filter(|item| matches!(item, Item::File(_))).count();
        Ok(Captured { files, bytes, failed: record.errors.len(), calls: record.calls.len() })
    }

    fn entry<'a>(&self, path: &'a Path) -> io::Result<(Directory, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((self.root.below(parent, Mode::RWXU)?, name))
    }

    fn publish(&self, name: &OsStr) -> io::Result<()> {
        // A full disk may show only now. A file that cannot be synced is still whole.
        rustix::fs::syncfs(&self.own)?;
        Ok(self.own.publish(name)?)
    }
}

fn write(parent: &Directory, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, new, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(content)
}

#[derive(Default)]
struct Layout<'a> {
    items: BTreeMap<PathBuf, Item<'a>>,
    /// Only their existence is known.
    there: Vec<PathBuf>,
    directories: Vec<PathBuf>,
}

enum Item<'a> {
    File(&'a [u8]),
    Link(&'a str),
}

impl<'a> Layout<'a> {
    /// A path that leads through a recorded link is stored at the link's target, where it will be found again.
    fn of(recording: &'a Recording) -> Self {
        let links: BTreeMap<PathBuf, &str> = recording
            .seen
            .iter()
            .filter_map(|(path, seen)| {
                Some((Path::new(path).strip_prefix("/").ok()?.to_owned(), seen.link.as_deref()?))
            })
            .collect();
        let mut layout = Self::default();
        for (path, seen) in &recording.seen {
            let Some(own) = resolved(Path::new(path), &links, false) else { continue };
            let Some(end) = resolved(Path::new(path), &links, true) else { continue };
            layout.add(own, end, seen);
        }
        layout
    }

    fn add(&mut self, own: PathBuf, end: PathBuf, seen: &'a Seen) {
        if let Some(target) = &seen.link {
            self.items.insert(own.clone(), Item::Link(target));
        }
        if let Some(bytes) = &seen.bytes {
            self.items.insert(end.clone(), Item::File(bytes));
        }
        if let Some(names) = &seen.names {
            let fit =
                |name: &&String| !name.contains(['/', '\0', '\u{fffd}']) && *name != "." && *name != "..";
            self.there.extend(names.iter().filter(fit).map(|name| end.join(name)));
            self.directories.push(end);
        }
        if seen.there {
            self.there.push(own);
        }
    }
}

/// Resolves all known links on a path below the root, and its last component only if asked to. `None` if links form a cycle.
fn resolved(path: &Path, links: &BTreeMap<PathBuf, &str>, follow_last: bool) -> Option<PathBuf> {
    let mut rest: VecDeque<OsString> = parts(path).collect();
    let mut at = PathBuf::new();
    let mut followed = 0;
    while let Some(part) = rest.pop_front() {
        if part == ".." {
            at.pop();
            continue;
        }
        at.push(&part);
        let Some(target) = links.get(&at) else { continue };
        if rest.is_empty() && !follow_last {
            continue;
        }
        followed += 1;
        if followed > MAX_LINKS {
            return None;
        }
        at.pop();
        let target = Path::new(target);
        if target.is_absolute() {
            at = PathBuf::new();
        }
        parts(target).collect::<Vec<_>>().into_iter().rev().for_each(|part| rest.push_front(part));
    }
    (!at.as_os_str().is_empty()).then_some(at)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn paths_lead_through_links() {
        let links: BTreeMap<PathBuf, &str> = [
            ("sys/dev/block/8:2", "../../devices/pci0/block/sda/sda2"),
            ("ring", "ring/x"),
            ("abs", "/sys/dev/block/8:2"),
            ("proc/self/ns/pid", "pid:[4026531836]"),
        ]
        .map(|(path, target)| (PathBuf::from(path), target))
        .into();
        let of = |path: &str, follow| resolved(Path::new(path), &links, follow);
        let block = PathBuf::from("sys/devices/pci0/block/sda/sda2");
        assert_eq!(of("/sys/dev/block/8:2", false), Some("sys/dev/block/8:2".into()));
        assert_eq!(of("/sys/dev/block/8:2", true), Some(block.clone()));
        assert_eq!(of("/sys/dev/block/8:2/partition", false), Some(block.join("partition")));
        assert_eq!(of("/abs/partition", false), Some(block.join("partition")));
        assert_eq!(of("/ring", true), None);
        assert_eq!(of("/../../etc", true), Some("etc".into()));
        assert_eq!(of("/proc/self/ns/pid", true), Some("proc/self/ns/pid:[4026531836]".into()));
    }

    #[test]
    fn what_is_there_stays() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "old").unwrap();
        let never = || false;
        assert!(matches!(capture(home.path(), &file, &never), Err(CaptureError::NoDirectory)));
        assert!(matches!(capture(home.path(), home.path(), &never), Err(CaptureError::NotEmpty)));
        assert!(matches!(capture(home.path(), Path::new("/"), &never), Err(CaptureError::NoDirectory)));
        let nowhere = home.path().join("none/tree");
        assert!(matches!(capture(home.path(), &nowhere, &never), Err(CaptureError::Unwritable(_))));
        let stopped = capture(home.path(), &home.path().join("tree"), &|| true);
        assert!(matches!(stopped, Err(CaptureError::Interrupted)));
        let left: Vec<_> =
            fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["file"], "nothing is left");
        let empty = home.path().join("empty");
        fs::create_dir(&empty).unwrap();
        assert!(capture(home.path(), &empty, &never).is_ok_and(|captured| captured.files > 10));
        assert!(empty.join(NAME).exists());
    }

    #[test]
    fn what_a_killed_capture_left_goes_with_the_next() {
        let home = tempfile::tempdir().unwrap();
        let parent = File::open(home.path()).unwrap();
        let left = Temporary::make(&parent, PREFIX).unwrap();
        fs::create_dir(home.path().join(left.name()).join("proc")).unwrap();
        left.leave();
        drop(left);
        capture(home.path(), &home.path().join("tree"), &|| false).unwrap();
        let names: Vec<_> =
            fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["tree"]);
    }
}
