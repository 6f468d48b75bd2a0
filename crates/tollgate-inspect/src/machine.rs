//! The source of facts: bounded reads of this machine or of a captured tree, and the answers of calls and instructions. Every
//! read can be recorded, so that a capture needs no list of its own.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};
use tollgate_arch::architecture::{Architecture, HERE};
use tollgate_model::Unknown;

pub use crate::answer::Found;
pub(crate) use crate::answer::{Answer, fact, found, unknown};
use crate::answer::{why, why_not};
use crate::calls;
use crate::leaves::Leaves;
use crate::record::{CapturedRecord, TreeError};
use crate::recorder::{Manner, Outcome, Recorder, Seen};
use crate::tree::{MAX_ENTRIES, Tree};

/// Limit for reading a whole file. All files that facts need are far smaller.
const MAX_FILE: u64 = 1 << 20;

/// A machine whose facts can be read: this one, or a captured tree.
#[derive(Debug, Clone)]
pub struct Machine {
    ground: Ground,
    leaves: Option<Leaves>,
    record: CapturedRecord,
    recorder: Option<Recorder>,
}

#[derive(Debug, Clone)]
enum Ground {
    Here(PathBuf),
    Tree(Tree),
}

impl Machine {
    /// This machine: its files, its CPUID, and its system calls if a file does not exist.
    pub fn here() -> Self {
        let ground = Ground::Here(PathBuf::from("/"));
        Self { ground, leaves: Leaves::here(), record: CapturedRecord::default(), recorder: None }
    }

    /// A tree with copies of another machine's `/proc`, `/sys` and marker files. This machine is never consulted, so facts from
    /// instructions and system calls are absent.
    pub fn captured(root: impl Into<PathBuf>) -> Self {
        let ground = Ground::Tree(Tree::new(root.into()));
        Self { ground, leaves: None, record: CapturedRecord::default(), recorder: None }
    }

    /// Like [`Machine::captured`], with the recorded answers of instructions and system calls.
    ///
    /// # Errors
    /// A directory that is not a captured tree, or whose record of calls cannot be read.
    pub fn open(root: &Path) -> Result<Self, TreeError> {
        let record = CapturedRecord::read(root)?;
        let leaves = record.leaves();
        Ok(Self { leaves, record, ..Self::captured(root) })
    }

    /// Replaces the answers of its CPUID instruction.
    #[must_use]
    pub fn with_leaves(self, leaves: Leaves) -> Self {
        Self { leaves: Some(leaves), ..self }
    }

    /// The directory whose file system was captured with a tree.
    pub fn captured_directory(&self) -> Option<&Path> {
        self.record.directory.as_deref()
    }

    pub(crate) fn recorded(self) -> (Self, Recorder) {
        let recorder = Recorder::default();
        (Self { recorder: Some(recorder.clone()), ..self }, recorder)
    }

    pub(crate) fn leaves(&self) -> Result<&Leaves, Unknown> {
        if self.is_arm64() {
            return Err(Unknown::Absent("arm64 has no CPUID".into()));
        }
        self.leaves.as_ref().ok_or_else(|| Unknown::Absent("CPUID was not captured".into()))
    }

    /// The kernel's architecture. Linux has the file since 6.1; an emulator of system calls shows that of its host.
    pub(crate) fn architecture(&self) -> Answer<String> {
        let listed = self.line("/proc/sys/kernel/arch").and_then(|named| match self.ground {
            Ground::Here(_) if Architecture::named(&named.value) != Some(HERE) => {
                Err(Unknown::Absent(format!("{} is not this program's", named.source)))
            }
            _ => Ok(named),
        });
        self.or_call(listed, "uname(2) machine", || Some(calls::uname()[2].clone()))
    }

    pub(crate) fn is_arm64(&self) -> bool {
        let architecture = match self.ground {
            Ground::Here(_) => Some(HERE),
            Ground::Tree(_) => self.architecture().ok().and_then(|named| Architecture::named(&named.value)),
        };
        architecture == Some(Architecture::Arm64)
    }

    /// The answer of a system call or instruction, or its errno. A captured tree finds it by `name`, the call with its argument.
    pub(crate) fn call<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        ask: impl FnOnce() -> Result<T, i32>,
    ) -> Answer<T> {
        let outcome = match &self.ground {
            Ground::Here(_) => {
                let outcome = ask();
                if let Some(recorder) = &self.recorder {
                    recorder.called(name, &outcome);
                }
                outcome
            }
            Ground::Tree(_) => match self.record.calls.get(name) {
                None => return Err(Unknown::Absent(format!("{name} was not captured"))),
                Some(Outcome::Errno(errno)) => Err(*errno),
                Some(Outcome::Value(value)) => Ok(T::deserialize(value)
                    .map_err(|_| Unknown::Unreadable(format!("{name}: the capture does not answer it")))?),
            },
        };
        match outcome {
            Ok(value) => found(value, name),
            Err(errno) => Err(why_not(name, errno)),
        }
    }

    pub(crate) fn or_call<T: Serialize + DeserializeOwned>(
        &self,
        answer: Answer<T>,
        name: &str,
        ask: impl FnOnce() -> Option<T>,
    ) -> Answer<T> {
        answer.or_else(|first| self.call(name, || ask().ok_or(libc::ENOSYS)).map_err(|_| first))
    }

    /// A whole file of at most [`MAX_FILE`] bytes; bytes that are not UTF-8 are replaced.
    pub(crate) fn text(&self, path: &str) -> Answer<String> {
        self.bytes(path).map(|found| found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Like [`Machine::text`], without the replacement.
    pub(crate) fn bytes(&self, path: &str) -> Answer<Vec<u8>> {
        let bytes = self.start_of(path, MAX_FILE + 1)?;
        if bytes.value.len() as u64 > MAX_FILE {
            return Err(Unknown::Unreadable(format!("{path}: larger than {} KiB", MAX_FILE >> 10)));
        }
        Ok(bytes)
    }

    /// The first `limit` bytes of a file, or all of it if it is shorter.
    pub(crate) fn start_of(&self, path: &str, limit: u64) -> Answer<Vec<u8>> {
        let read = |mut bytes| {
            self.open_file(path)?.take(limit).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let keep = |bytes: &Vec<u8>, path: &str, seen: &mut Seen| seen.keep_bytes(path, bytes);
        let bytes = self.noted(path, Manner::Read, || read(Vec::new()), keep)?;
        found(bytes, path)
    }

    /// A file with a single value, which must not be empty.
    pub(crate) fn line(&self, path: &str) -> Answer<String> {
        let text = self.text(path)?;
        match text.value.trim() {
            "" => Err(Unknown::Unreadable(format!("{path}: empty"))),
            trimmed => found(trimmed.to_owned(), path),
        }
    }

    pub(crate) fn number(&self, path: &str) -> Answer<i64> {
        self.line(path)?.parse("a whole number", |text| text.parse().ok())
    }

    pub(crate) fn flag(&self, path: &str) -> Answer<bool> {
        self.line(path)?.parse("0 or 1", crate::text::zero_or_one)
    }

    pub(crate) fn choice(&self, path: &str) -> Answer<String> {
        self.line(path)?.parse("a line of choices with one in brackets", |text| {
            crate::text::marked(text, '[', ']').map(str::to_owned)
        })
    }

    pub(crate) fn names(&self, path: &str) -> Answer<Vec<String>> {
        let list = || match &self.ground {
            Ground::Here(root) => fs::read_dir(below(root, path))?
                .take(MAX_ENTRIES)
                .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
                .collect(),
            Ground::Tree(tree) => tree.names(path),
        };
        let mut names =
            self.noted(path, Manner::List, list, |names, _, seen| seen.names = Some(names.clone()))?;
        names.sort();
        found(names, path)
    }

    pub(crate) fn link(&self, path: &str) -> Answer<String> {
        let read = || match &self.ground {
            Ground::Here(root) => {
                fs::read_link(below(root, path)).map(|target| target.to_string_lossy().into_owned())
            }
            Ground::Tree(tree) => tree.link(path),
        };
        let target = self.noted(path, Manner::Link, read, |link, _, seen| seen.link = Some(link.clone()))?;
        found(target, path)
    }

    pub(crate) fn there(&self, path: &str) -> Answer<()> {
        let look = || match &self.ground {
            Ground::Here(root) => fs::symlink_metadata(below(root, path)).map(drop),
            Ground::Tree(tree) => tree.there(path),
        };
        self.noted(path, Manner::Look, look, |(), _, seen| seen.there = true)?;
        found((), path)
    }

    /// Reads a path; in a captured tree, with the recorded errors. Records the read if there is a recorder.
    fn noted<T>(
        &self,
        path: &str,
        manner: Manner,
        look: impl FnOnce() -> io::Result<T>,
        keep: fn(&T, &str, &mut Seen),
    ) -> Result<T, Unknown> {
        if let Some(&errno) = self.record.errors.get(path).and_then(|errors| errors.get(&manner)) {
            return Err(why(path, &io::Error::from_raw_os_error(errno)));
        }
        let looked = look();
        if let Some(recorder) = &self.recorder {
            recorder.noted(path, manner, &looked, keep);
        }
        looked.map_err(|error| why(path, &error))
    }

    /// Opens a file to read parts of it. It does not block, since the path may be a named pipe without a writer.
    pub(crate) fn open_file(&self, path: &str) -> io::Result<File> {
        match &self.ground {
            Ground::Here(root) => OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
                .open(below(root, path)),
            Ground::Tree(tree) => tree.file(path),
        }
    }
}

/// Some paths come from files, such as mount points: this keeps them below the root.
fn below(root: &Path, path: &str) -> PathBuf {
    let inside = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
    inside.fold(root.to_owned(), |path, part| path.join(part))
}

#[cfg(test)]
mod tests {
    use tollgate_model::Fact;

    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let path = below(Path::new("/captured"), "/proc/../../etc/./shadow");
        assert_eq!(path, Path::new("/captured/proc/etc/shadow"));
    }

    /// As in an empty chroot: there are no files, but system calls work.
    #[test]
    fn without_files_the_system_calls_are_asked() {
        let empty = tempfile::tempdir().unwrap();
        let machine = Machine { ground: Ground::Here(empty.path().to_owned()), ..Machine::here() };
        let facts = crate::read_facts(&machine);
        for (name, call) in [
            ("kernel.release", "uname(2) release"),
            ("kernel.version", "uname(2) version"),
            ("cpu.architecture", "uname(2) machine"),
            ("cpu.allowed", "sched_getaffinity(2)"),
            ("vdso.present", "getauxval(3) AT_SYSINFO_EHDR"),
            ("seccomp.mode", "prctl(2) PR_GET_SECCOMP"),
            ("process.no_new_privileges", "prctl(2) PR_GET_NO_NEW_PRIVS"),
            ("process.user", "geteuid(2)"),
            ("memory.total", "sysinfo(2) totalram"),
            ("uptime", "sysinfo(2) uptime"),
        ] {
            assert!(
                matches!(&facts[name], Fact::Known { source, .. } if source == call),
                "{name}: {:?}",
                facts[name]
            );
        }
        let here = crate::read_facts(&Machine::here());
        for name in ["kernel.release", "cpu.allowed_list", "seccomp.mode", "process.user", "memory.total"] {
            if let Some(value) = here[name].value() {
                assert_eq!(facts[name].value(), Some(value), "{name}");
            }
        }
    }
}
