//! Adds up by file, by the path that it had when it was opened or named.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, os::unix::fs::MetadataExt};

use hashbrown::HashMap;
use tollgate_model::traced::{FileTime, MOST_ENTRIES, Misaligned, Parts};

use super::sums::Key;
use super::sys;
use super::thread::{Inside, Named, Thread};
use crate::direct::{self, Buffer, MOST_BUFFERS, Need, Refused};
use crate::operations::{Names, Operation};
use crate::outcome::{Operations, slowest_files};

/// The longest path that is read, including its NUL (`PATH_MAX` of linux/limits.h).
const PATH_MAX: usize = 4096;
/// The most descriptors of a process whose files are cached, and the most calls. Others are looked up each time.
const MOST_DESCRIPTORS: usize = 4096;
/// The operation of a path by which a file was opened.
const NAMED: &str = "named";
/// The operation of such a path if it led to a file that is older than the trace. The command may replace that file.
const PRESENT: &str = "present";
const CURRENT: i32 = libc::AT_FDCWD;

/// The descriptors of a process that a call closes or replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    First,
    Second,
    Many,
    None,
}

impl Replaces {
    pub fn of(key: Key) -> Self {
        match key.base_name() {
            Some("close") => Self::First,
            Some("dup2" | "dup3") => Self::Second,
            Some("close_range" | "unshare") => Self::Many,
            _ => Self::None,
        }
    }
}

#[derive(Debug, Default)]
pub struct Files {
    /// Since when paths are kept, if they are.
    keeps_paths: Option<SystemTime>,
    numbers: HashMap<PathBuf, u32>,
    entries: Vec<Operations>,
    descriptors: HashMap<libc::pid_t, HashMap<i32, u32>>,
    known: HashMap<Key, (Option<Operation>, Replaces)>,
    /// Refused direct I/O by file and call: the first of each, and how many there were.
    misaligned: HashMap<(u32, &'static str), Misaligned>,
    pub missed: u64,
    /// Successful operations on files whose path could not be read, as without /proc.
    pub unresolved: u64,
}

impl Files {
    pub fn with(keeps_paths: bool) -> Self {
        Self { keeps_paths: keeps_paths.then(SystemTime::now), ..Self::default() }
    }

    fn meaning(&mut self, key: Key) -> (Option<Operation>, Replaces) {
        if self.known.len() >= MOST_DESCRIPTORS && !self.known.contains_key(&key) {
            return (None, Replaces::None);
        }
        *self
            .known
            .entry(key)
            .or_insert_with(|| (key.base_name().and_then(Operation::by_call), Replaces::of(key)))
    }

    pub fn names(&mut self, thread: &Thread, key: Key, arguments: &[u64; 6]) -> Option<Named> {
        let operation = self.meaning(key).0?;
        let file = match operation.names {
            Names::Opened { at } => {
                if let Some(since) = self.keeps_paths {
                    self.note_path(thread.pid, at, arguments, since);
                }
                None
            }
            Names::Descriptor => self.of_descriptor(thread.pid, arguments[0] as i32),
            Names::Path => self.of_path(thread.pid, CURRENT, arguments[0]),
            Names::PathAt => self.of_path(thread.pid, arguments[0] as i32, arguments[1]),
        };
        Some(Named { operation, file })
    }

    fn note_path(&mut self, process: libc::pid_t, at: bool, arguments: &[u64; 6], since: SystemTime) {
        let (directory, path) =
            if at { (arguments[0] as i32, arguments[1]) } else { (CURRENT, arguments[0]) };
        let Some(path) = read_path(process, path).and_then(|path| absolute(process, directory, path)) else {
            return;
        };
        let is_older = fs::metadata(&path).and_then(|about| about.created()).is_ok_and(|at| at < since);
        let file = self.number(path);
        if let Some(entry) = file.and_then(|file| self.entries.get_mut(file as usize)) {
            entry.by_name(NAMED).count += 1;
            if is_older {
                entry.by_name(PRESENT).count += 1;
            }
        }
    }

    pub fn returned(
        &mut self,
        process: libc::pid_t,
        call: &Inside,
        parts: Parts,
        result: i64,
        is_error: bool,
    ) {
        let Inside { key, arguments, named, .. } = call;
        self.forget_replaced(process, *key, arguments);
        let Some(Named { operation, file }) = *named else { return };
        let file = match (file, operation.names) {
            (None, Names::Opened { .. }) if !is_error => self.of_descriptor(process, result as i32),
            (None, Names::Opened { at: true }) => self.of_path(process, arguments[0] as i32, arguments[1]),
            (None, Names::Opened { at: false }) => self.of_path(process, CURRENT, arguments[0]),
            (file, _) => file,
        };
        // A file above the limit is counted already, and a call that failed may have no file.
        if file.is_none() && !is_error && self.entries.len() < MOST_ENTRIES {
            self.unresolved += 1;
        }
        if let Some(file) = file
            && operation.moves
            && result == -i64::from(libc::EINVAL)
            && let Some(name) = key.base_name().filter(|_| !key.is_32_bit)
        {
            self.note_refused(process, file, name, arguments);
        }
        let Some(entry) = file.and_then(|file| self.entries.get_mut(file as usize)) else { return };
        let sums = entry.by_name(operation.name);
        sums.count += 1;
        sums.errors += u64::from(is_error);
        sums.parts = sums.parts.plus(parts);
        if operation.moves && !is_error {
            sums.bytes = sums.bytes.saturating_add(u64::try_from(result).unwrap_or(0));
        }
    }

    /// After a call failed with EINVAL: records its buffers, and the requirements of the file, if its descriptor was opened
    /// with O_DIRECT. The thread is stopped meanwhile.
    fn note_refused(&mut self, process: libc::pid_t, file: u32, call: &'static str, arguments: &[u64; 6]) {
        let Some((takes_offset, is_vector)) = direct::shape(call) else { return };
        let [descriptor, buffer, length, offset, ..] = *arguments;
        let Some((flags, position)) = described(process, descriptor as i32) else { return };
        // The same file may also be open without O_DIRECT.
        if flags & libc::O_DIRECT == 0 {
            return;
        }
        if let Some(known) = self.misaligned.get_mut(&(file, call)) {
            known.count += 1;
            return;
        }
        if self.misaligned.len() >= MOST_ENTRIES {
            return;
        }
        let buffers = if is_vector {
            read_vector(process, buffer, length)
        } else {
            vec![Buffer { address: buffer, length }]
        };
        let Some((path, _)) = self.numbers.iter().find(|(_, number)| **number == file) else { return };
        let refused = Refused {
            path: path.to_string_lossy().into_owned(),
            call: call.to_owned(),
            count: 1,
            offset: direct::offset(takes_offset, offset, position),
            buffers,
            is_vector,
        };
        let open = PathBuf::from(format!("/proc/{process}/fd/{}", descriptor as i32));
        let device = fs::metadata(&open).ok().map(|file| (libc::major(file.dev()), libc::minor(file.dev())));
        self.misaligned.insert((file, call), refused.with(Need::new(&open, device)));
    }

    pub fn take_misaligned(&mut self) -> Vec<Misaligned> {
        let mut all: Vec<Misaligned> = std::mem::take(&mut self.misaligned).into_values().collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| (&a.path, &a.call).cmp(&(&b.path, &b.call))));
        all
    }

    fn forget_replaced(&mut self, process: libc::pid_t, key: Key, arguments: &[u64; 6]) {
        let replaces = self.meaning(key).1;
        let Some(descriptors) = self.descriptors.get_mut(&process) else { return };
        match replaces {
            Replaces::First => descriptors.remove(&(arguments[0] as i32)),
            Replaces::Second => descriptors.remove(&(arguments[1] as i32)),
            Replaces::Many => {
                descriptors.clear();
                None
            }
            Replaces::None => None,
        };
    }

    /// Forgets the descriptors of a process that has ended, or called exec and so lost those with close-on-exec.
    pub fn forget(&mut self, process: libc::pid_t) {
        self.descriptors.remove(&process);
    }

    fn of_descriptor(&mut self, process: libc::pid_t, descriptor: i32) -> Option<u32> {
        let known = self.descriptors.get(&process).and_then(|descriptors| descriptors.get(&descriptor));
        if let Some(file) = known {
            return Some(*file);
        }
        let path = format!("/proc/{process}/fd/{descriptor}");
        let link = fs::read_link(&path).ok()?;
        let is_removed = || fs::metadata(&path).is_ok_and(|file| file.nlink() == 0);
        let file = self.number(named(unmarked(link, is_removed)))?;
        let descriptors = self.descriptors.entry(process).or_default();
        if descriptors.len() < MOST_DESCRIPTORS {
            descriptors.insert(descriptor, file);
        }
        Some(file)
    }

    /// Reads a path in a process's memory; an empty one means the directory's descriptor itself (`AT_EMPTY_PATH`).
    fn of_path(&mut self, process: libc::pid_t, directory: i32, address: u64) -> Option<u32> {
        let path = if address == 0 { PathBuf::new() } else { read_path(process, address)? };
        if path.as_os_str().is_empty() && directory != CURRENT {
            return self.of_descriptor(process, directory);
        }
        self.number(absolute(process, directory, path)?)
    }

    fn number(&mut self, path: PathBuf) -> Option<u32> {
        if let Some(number) = self.numbers.get(&path) {
            return Some(*number);
        }
        if self.entries.len() >= MOST_ENTRIES {
            self.missed += 1;
            return None;
        }
        self.entries.push(Operations::default());
        let number = self.entries.len() as u32 - 1;
        self.numbers.insert(path, number);
        Some(number)
    }

    pub fn into_times(self) -> Vec<FileTime> {
        let mut entries = self.entries;
        slowest_files(self.numbers.into_iter().map(|(path, number)| {
            let operations = entries.get_mut(number as usize).map(std::mem::take).unwrap_or_default();
            (path.to_string_lossy().into_owned(), operations)
        }))
    }
}

/// The path from the root, of a path in a directory that a process has open.
fn absolute(process: libc::pid_t, directory: i32, path: PathBuf) -> Option<PathBuf> {
    let path = if path.is_absolute() {
        path
    } else {
        let link = match directory {
            CURRENT => format!("/proc/{process}/cwd"),
            directory => format!("/proc/{process}/fd/{directory}"),
        };
        fs::read_link(link).ok()?.join(path)
    };
    // `./a` and `a//b` are normalized; `..` may follow a symbolic link, and stays.
    Some(path.components().collect())
}

/// Removes the suffix that the kernel adds to the path of a removed file (proc_pid_fd(5)), unless the file's name ends like that.
fn unmarked(link: PathBuf, is_removed: impl Fn() -> bool) -> PathBuf {
    match link.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) if is_removed() => match path.strip_prefix(b"/memfd:") {
            Some(name) => PathBuf::from(OsString::from_vec([b"memfd:", name].concat())),
            None => PathBuf::from(OsStr::from_bytes(path)),
        },
        _ => link,
    }
}

/// Maps all pipes, such as `pipe:[17]`, to one name, and likewise for other kinds.
fn named(link: PathBuf) -> PathBuf {
    let text = link.as_os_str().as_bytes();
    if text.starts_with(b"/") || text.starts_with(b"memfd:") {
        return link;
    }
    let kind =
        text.strip_prefix(b"anon_inode:").unwrap_or(text).split(|byte| *byte == b':').next().unwrap_or(text);
    let kind = kind.strip_prefix(b"[").and_then(|kind| kind.strip_suffix(b"]")).unwrap_or(kind);
    PathBuf::from(String::from_utf8_lossy(kind).into_owned())
}

/// Returns the flags and the position of a descriptor (proc_pid_fdinfo(5)).
fn described(process: libc::pid_t, descriptor: i32) -> Option<(libc::c_int, u64)> {
    let text = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}")).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = libc::c_int::from_str_radix(field("flags:")?, 8).ok()?;
    Some((flags, field("pos:")?.parse().ok()?))
}

fn read_vector(process: libc::pid_t, address: u64, number: u64) -> Vec<Buffer> {
    let mut bytes = [0u8; 16 * MOST_BUFFERS];
    let wanted = number.min(MOST_BUFFERS as u64) as usize * 16;
    let mut read = 0;
    while read < wanted {
        let Some(from) = address.checked_add(read as u64) else { break };
        match sys::read_memory(process, from, &mut bytes[read..wanted]) {
            0 => break,
            more => read += more,
        }
    }
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
    bytes[..read]
        .chunks_exact(16)
        .map(|pair| Buffer { address: word(&pair[..8]), length: word(&pair[8..]) })
        .collect()
}

/// Reads a path in the memory of a process; `None` if it is not readable or does not end.
fn read_path(process: libc::pid_t, address: u64) -> Option<PathBuf> {
    let mut text = [0u8; PATH_MAX];
    let mut length = 0;
    while length < PATH_MAX {
        let read = sys::read_memory(process, address.checked_add(length as u64)?, &mut text[length..]);
        if read == 0 {
            return None;
        }
        if let Some(end) = text[length..length + read].iter().position(|byte| *byte == 0) {
            let path = text.get(..length + end)?;
            return Some(Path::new(OsStr::from_bytes(path)).to_owned());
        }
        length += read;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_called_by_its_kind() {
        for (link, name) in [
            ("pipe:[4711]", "pipe"),
            ("socket:[12]", "socket"),
            ("anon_inode:[eventpoll]", "eventpoll"),
            ("anon_inode:inotify", "inotify"),
            ("/tmp/a", "/tmp/a"),
            ("", ""),
        ] {
            assert_eq!(named(PathBuf::from(link)), PathBuf::from(name));
        }
    }

    #[test]
    fn a_file_that_was_removed_has_the_path_that_it_had() {
        let of = |link: &str, is_removed| unmarked(PathBuf::from(link), || is_removed);
        assert_eq!(of("/tmp/a (deleted)", true), PathBuf::from("/tmp/a"));
        assert_eq!(of("/tmp/a (deleted)", false), PathBuf::from("/tmp/a (deleted)"));
        assert_eq!(of("/tmp/a", true), PathBuf::from("/tmp/a"));
        assert_eq!(named(of("/memfd:x:y (deleted)", true)), PathBuf::from("memfd:x:y"));
    }

    #[test]
    fn calls_are_known_by_their_numbers() {
        let key = |number| Key { number, is_32_bit: false };
        let meaning = Files::default().meaning(key(libc::SYS_pread64));
        assert_eq!(meaning.0.map(|operation| operation.name), Some("read"));
        assert_eq!(Files::default().meaning(key(-1)), (None, Replaces::None));
        assert_eq!(Replaces::of(key(libc::SYS_dup3)), Replaces::Second);
    }

    #[test]
    fn a_path_is_read_from_memory_and_bounded() {
        let own = std::process::id() as libc::pid_t;
        let path = c"/tmp/some/path";
        assert_eq!(read_path(own, path.as_ptr() as u64), Some(PathBuf::from("/tmp/some/path")));
        let endless = vec![b'a'; 3 * PATH_MAX];
        assert_eq!(read_path(own, endless.as_ptr() as u64), None);
        assert_eq!(read_path(own, 8), None);
        assert_eq!(read_path(own, u64::MAX), None);
    }
}
