//! The map of a living process, or a saved one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tollgate_model::bounded;
use tollgate_model::text::plainly;

use super::{ElfKind, Layout, elf_of};

/// A map of a million mappings.
const MOST_BYTES: u64 = 128 << 20;

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// As it was named.
    pub whose: Whose,
    /// Where its regions are.
    pub layout: Layout,
    /// Whether its program is linked to a fixed address (ET_EXEC). None of a saved map, and of a file that cannot be read.
    pub is_fixed: Option<bool>,
}

/// Whose map it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A process that lived when it was read.
    Process(u32),
    /// This file, or `-` for standard input.
    File(PathBuf),
}

/// Why there is no map. Each is a sentence.
#[derive(Debug, thiserror::Error)]
pub enum NoSide {
    /// Nothing lives under this number.
    #[error("there is no process {0}; a program of that name is named \"./{0}\"")]
    NoProcess(String),
    /// Another user's.
    #[error("the map of process {0} may not be read: {1}; its user and root may read it")]
    Refused(u32, &'static str),
    /// It has no memory.
    #[error("process {0} has no map: it is a thread of the kernel, or it has ended")]
    NoMap(u32),
    /// It cannot be read.
    #[error("{}: {}", .0.display(), plainly(.1))]
    Unreadable(PathBuf, io::Error),
    /// It is read whole.
    #[error("{}: more than {} MiB is no map of a process", .0.display(), MOST_BYTES >> 20)]
    TooLong(PathBuf),
    /// It has no such line.
    #[error("{}: no line is one of /proc/PID/maps; `cat /proc/PID/maps` prints a map", .0.display())]
    NotAMap(PathBuf),
}

impl Side {
    /// What was named, where it is the number of a process or a file with a map in it. None of anything else, such as a
    /// program.
    ///
    /// # Errors
    /// A process without a map that can be read.
    pub fn find(named: &Path) -> Result<Option<Self>, NoSide> {
        let text = named.to_string_lossy();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // A number that is too large is that of no process.
            let pid = text.parse().map_err(|_| NoSide::NoProcess(text.into_owned()))?;
            return Self::living(pid).map(Some);
        }
        if text != "-" && !is_map(named) {
            return Ok(None);
        }
        Self::saved(named).map(Some)
    }

    fn living(pid: u32) -> Result<Self, NoSide> {
        let path = PathBuf::from(format!("/proc/{pid}/maps"));
        let text = whole(&path).map_err(|error| match error {
            NoSide::Unreadable(_, error) if error.kind() == io::ErrorKind::NotFound => {
                NoSide::NoProcess(pid.to_string())
            }
            NoSide::Unreadable(_, error) if error.raw_os_error() == Some(libc::ESRCH) => NoSide::NoMap(pid),
            NoSide::Unreadable(_, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                NoSide::Refused(pid, "Permission denied")
            }
            other => other,
        })?;
        let link = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let program = link.map(|link| link.to_string_lossy().into_owned());
        let program = program.as_deref().map(|path| path.strip_suffix(" (deleted)").unwrap_or(path));
        let layout = Layout::parse(&text, program).ok_or(NoSide::NoMap(pid))?;
        let elf = File::open(format!("/proc/{pid}/exe")).ok().and_then(|file| elf_of(&file).ok());
        Ok(Self { whose: Whose::Process(pid), layout, is_fixed: elf.map(|elf| elf.kind == ElfKind::Fixed) })
    }

    /// A saved map.
    ///
    /// # Errors
    /// A file that cannot be read, or has none in it.
    pub fn saved(path: &Path) -> Result<Self, NoSide> {
        let layout = Layout::parse(&whole(path)?, None).ok_or_else(|| NoSide::NotAMap(path.to_owned()))?;
        Ok(Self { whose: Whose::File(path.to_owned()), layout, is_fixed: None })
    }
}

/// Whether a file begins with a map, perhaps behind some other lines.
fn is_map(path: &Path) -> bool {
    const BEGINNING: u64 = 16 << 10;
    let mut bytes = Vec::new();
    let opened = open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
    opened.is_ok() && Layout::parse(&String::from_utf8_lossy(&bytes), None).is_some()
}

/// Without waiting: the path may be a named pipe without a writer.
fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn whole(path: &Path) -> Result<String, NoSide> {
    let read = match path.as_os_str() == "-" {
        true => bounded::whole(io::stdin().lock(), MOST_BYTES),
        false => open(path).and_then(|file| bounded::whole(file, MOST_BYTES)),
    };
    let bytes = read.map_err(|error| NoSide::Unreadable(path.to_owned(), error))?;
    let bytes = bytes.ok_or_else(|| NoSide::TooLong(path.to_owned()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
