//! Where facts are read: bounded reads below a root, and what becomes of an error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use tollgate_model::{Fact, FactValue, Unknown};

use crate::leaves::Leaves;

/// The most that is read of a file that is read whole. No file that a fact needs comes near.
const MAX_FILE: u64 = 1 << 20;
/// The longest text that is a fact's value; the longest real one is the kernel command line, 2048 bytes.
const MAX_TEXT: usize = 4096;
/// The most that a list of texts may hold together.
const MAX_LIST: usize = 1 << 16;
/// The most entries of a directory that are looked at.
const MAX_ENTRIES: usize = 4096;

/// A value and where it was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found<T> {
    pub value: T,
    pub source: String,
}

/// A value with its source, or why there is none.
pub(crate) type Answer<T> = Result<Found<T>, Unknown>;

/// A found value.
pub(crate) fn found<T>(value: T, source: impl Into<String>) -> Answer<T> {
    Ok(Found { value, source: source.into() })
}

impl<T> Found<T> {
    /// Another value of the same source.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Found<U> {
        Found { value: change(self.value), source: self.source }
    }
}

impl Found<String> {
    /// What `parser` makes of the text; unreadable, as not being `what`, where it makes nothing of it.
    pub(crate) fn parse<U>(self, what: &str, parser: impl FnOnce(&str) -> Option<U>) -> Answer<U> {
        match parser(&self.value) {
            Some(value) => found(value, self.source),
            None => {
                let excerpt: String = self.value.chars().take(60).collect();
                Err(Unknown::Unreadable(format!("{}: {excerpt:?} is not {what}", self.source)))
            }
        }
    }
}

/// The gate through which every answer becomes a fact: texts lose the white space around them and are made
/// fit for a terminal, and what is larger than any such value can be is not taken for one.
pub(crate) fn fact(answer: Answer<impl Into<FactValue>>) -> Fact {
    let found = match answer {
        Ok(found) => found.map(Into::into),
        Err(why) => return unknown(why),
    };
    let source = plain(&found.source);
    match found.value {
        FactValue::Text(text) if text.len() > MAX_TEXT => {
            Fact::unreadable(format!("{source}: longer than {MAX_TEXT} bytes"))
        }
        FactValue::List(items) if items.iter().map(String::len).sum::<usize>() > MAX_LIST => {
            Fact::unreadable(format!("{source}: longer than {MAX_LIST} bytes"))
        }
        FactValue::Real(x) if !x.is_finite() => Fact::unreadable(format!("{source}: {x} is not a number")),
        FactValue::Text(text) => Fact::known(plain(&text), source),
        FactValue::List(items) => {
            Fact::known(items.iter().map(|item| plain(item)).collect::<Vec<_>>(), source)
        }
        value => Fact::known(value, source),
    }
}

/// The gate for an answer that is no value.
pub(crate) fn unknown(why: Unknown) -> Fact {
    match why {
        Unknown::Absent(why) => Fact::absent(plain(&why)),
        Unknown::Refused(why) => Fact::refused(plain(&why)),
        Unknown::Unreadable(why) => Fact::unreadable(plain(&why)),
    }
}

/// Text without white space or NUL at its ends and with control characters written out as `\u{1b}`.
fn plain(text: &str) -> String {
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    let mut fit = String::with_capacity(trimmed.len());
    for c in trimmed.chars() {
        if c.is_control() { fit.extend(c.escape_default()) } else { fit.push(c) }
    }
    fit
}

/// A machine whose facts can be read: the one at hand, or a captured tree.
#[derive(Debug, Clone)]
pub struct Machine {
    root: PathBuf,
    live: bool,
    leaves: Option<Leaves>,
}

impl Machine {
    /// The machine at hand: its files, its CPUID, and its system calls where a file is not there.
    pub fn here() -> Self {
        Self { root: PathBuf::from("/"), live: true, leaves: Some(Leaves::here()) }
    }

    /// A tree with copies of another machine's `/proc`, `/sys` and marker files. Nothing of the machine at
    /// hand is consulted, so what only an instruction or a system call tells is absent.
    pub fn captured(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), live: false, leaves: None }
    }

    /// The same machine with what its CPUID instruction said.
    #[must_use]
    pub fn with_leaves(self, leaves: Leaves) -> Self {
        Self { leaves: Some(leaves), ..self }
    }

    /// What the CPUID instruction said.
    pub(crate) fn leaves(&self) -> Result<&Leaves, Unknown> {
        self.leaves.as_ref().ok_or_else(|| Unknown::Absent("CPUID was not captured".into()))
    }

    /// `answer`, or where that is none and the machine is at hand, what a system call says; `call` is its
    /// name.
    pub(crate) fn or_call<T>(
        &self,
        answer: Answer<T>,
        call: &str,
        ask: impl FnOnce() -> Option<T>,
    ) -> Answer<T> {
        match answer {
            Err(_) if self.live => ask().map_or(answer, |value| found(value, call)),
            _ => answer,
        }
    }

    /// A file whole, at most [`MAX_FILE`] bytes of it; what is not UTF-8 is replaced.
    pub(crate) fn text(&self, path: &str) -> Answer<String> {
        self.bytes(path).map(|found| found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// As [`Machine::text`], without the replacement.
    pub(crate) fn bytes(&self, path: &str) -> Answer<Vec<u8>> {
        let bytes = self.start_of(path, MAX_FILE + 1)?;
        if bytes.value.len() as u64 > MAX_FILE {
            return Err(Unknown::Unreadable(format!("{path}: larger than {} KiB", MAX_FILE >> 10)));
        }
        Ok(bytes)
    }

    /// The first `limit` bytes of a file, or all of it where it is shorter.
    pub(crate) fn start_of(&self, path: &str, limit: u64) -> Answer<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut bytes))
            .map_err(|error| why(path, &error))?;
        found(bytes, path)
    }

    /// A file that holds one value. Nothing at all is not one.
    pub(crate) fn line(&self, path: &str) -> Answer<String> {
        let text = self.text(path)?;
        match text.value.trim() {
            "" => Err(Unknown::Unreadable(format!("{path}: empty"))),
            trimmed => found(trimmed.to_owned(), path),
        }
    }

    /// A file that holds one whole number.
    pub(crate) fn number(&self, path: &str) -> Answer<i64> {
        self.line(path)?.parse("a whole number", |text| text.parse().ok())
    }

    /// A file that holds 0 or 1.
    pub(crate) fn flag(&self, path: &str) -> Answer<bool> {
        self.line(path)?.parse("0 or 1", crate::text::zero_or_one)
    }

    /// The names in a directory, sorted.
    pub(crate) fn names(&self, path: &str) -> Answer<Vec<String>> {
        let entries = fs::read_dir(self.below_root(path)).map_err(|error| why(path, &error))?;
        let mut names = entries
            .take(MAX_ENTRIES)
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| why(path, &error))?;
        names.sort();
        found(names, path)
    }

    /// What a symbolic link holds.
    pub(crate) fn link(&self, path: &str) -> Answer<String> {
        let target = fs::read_link(self.below_root(path)).map_err(|error| why(path, &error))?;
        found(target.to_string_lossy().into_owned(), path)
    }

    /// That something is at `path`; absent where not.
    pub(crate) fn there(&self, path: &str) -> Answer<()> {
        fs::symlink_metadata(self.below_root(path)).map_err(|error| why(path, &error))?;
        found((), path)
    }

    /// Without waiting: a captured tree may hold a named pipe that nobody writes to.
    fn open(&self, path: &str) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(self.below_root(path))
    }

    /// Some paths come out of files, such as mount points: none of them leads out of the tree.
    fn below_root(&self, path: &str) -> PathBuf {
        let inside = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
        inside.fold(self.root.clone(), |path, part| path.join(part))
    }
}

/// The three answers. That a file's directory is a file, or that the kernel has the file but not the thing
/// behind it (`/proc/pressure` where that is off), is absence as well.
fn why(path: &str, error: &io::Error) -> Unknown {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Unknown::Absent(format!("{path} does not exist")),
        Some(libc::ENOTDIR | libc::EOPNOTSUPP) => Unknown::Absent(format!("{path}: {error}")),
        Some(libc::EACCES | libc::EPERM) => Unknown::Refused(format!("{path}: {error}")),
        _ => Unknown::Unreadable(format!("{path}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer<String> {
        found(text.to_owned(), "a file")
    }

    #[test]
    fn a_fact_is_fit_for_a_terminal() {
        assert_eq!(fact(answer("  quiet\u{1b}[31m\n\0")), Fact::known("quiet\\u{1b}[31m", "a file"));
    }

    #[test]
    fn what_is_too_long_is_no_value() {
        let long = "x".repeat(MAX_TEXT + 1);
        assert!(matches!(fact(answer(&long)), Fact::Unknown { why: Unknown::Unreadable(_) }));
        assert!(matches!(fact(found(vec![long; 20], "a file")), Fact::Unknown { .. }));
    }

    #[test]
    fn what_is_not_finite_is_no_value() {
        assert!(matches!(fact(found(f64::NAN, "a file")), Fact::Unknown { .. }));
    }

    #[test]
    fn paths_stay_below_the_root() {
        let machine = Machine::captured("/captured");
        assert_eq!(machine.below_root("/proc/../../etc/./shadow"), Path::new("/captured/proc/etc/shadow"));
    }

    #[test]
    fn errors_are_three_answers() {
        let of = |code| why("/f", &io::Error::from_raw_os_error(code));
        for code in [libc::ENOENT, libc::ENOTDIR, libc::EOPNOTSUPP] {
            assert!(matches!(of(code), Unknown::Absent(_)), "{code}");
        }
        for code in [libc::EACCES, libc::EPERM] {
            assert!(matches!(of(code), Unknown::Refused(_)), "{code}");
        }
        for code in [libc::EIO, libc::EINVAL, libc::ELOOP, libc::EISDIR] {
            assert!(matches!(of(code), Unknown::Unreadable(_)), "{code}");
        }
    }

    /// As in an empty chroot: no file is there, the system calls are.
    #[test]
    fn without_files_the_system_calls_are_asked() {
        let empty = tempfile::tempdir().unwrap();
        let machine = Machine { root: empty.path().to_owned(), ..Machine::here() };
        let facts = crate::environment(&machine);
        for (name, call) in [
            ("kernel.release", "uname(2)"),
            ("kernel.version", "uname(2)"),
            ("cpu.allowed", "sched_getaffinity(2)"),
            ("vdso.present", "getauxval(3)"),
            ("seccomp.mode", "prctl(2) PR_GET_SECCOMP"),
            ("process.no_new_privileges", "prctl(2) PR_GET_NO_NEW_PRIVS"),
            ("process.user", "geteuid(2)"),
            ("memory.total", "sysinfo(2)"),
            ("uptime", "sysinfo(2)"),
        ] {
            assert!(
                matches!(&facts[name], Fact::Known { source, .. } if source == call),
                "{name}: {:?}",
                facts[name]
            );
        }
        let here = crate::environment(&Machine::here());
        for name in ["kernel.release", "cpu.allowed_list", "seccomp.mode", "process.user", "memory.total"] {
            if let Some(value) = here[name].value() {
                assert_eq!(facts[name].value(), Some(value), "{name}");
            }
        }
    }
}
