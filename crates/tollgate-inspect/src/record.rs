//! The record of a captured tree, its file `tollgate.json`: the answers of instructions and calls, and the reads that failed.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::{collections::BTreeMap, fs::OpenOptions, os::unix::fs::OpenOptionsExt};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_model::text;

use crate::leaves::{Leaves, Registers};
use crate::recorder::{Manner, Outcome, Recording};

pub(crate) const NAME: &str = "tollgate.json";
/// The format version that is written, and the only one that is read.
const FORMAT: u32 = 1;
/// Ours takes some ten kilobytes.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CapturedRecord {
    pub format: u32,
    pub directory: Option<PathBuf>,
    /// The answers of CPUID; null if it was not executed.
    pub cpuid: Option<Vec<Leaf>>,
    /// The answers of calls, by their names, which are the sources of facts.
    pub calls: BTreeMap<String, Outcome>,
    /// The paths that could not be read, with the kind of read and errno.
    pub errors: BTreeMap<String, BTreeMap<Manner, i32>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leaf {
    leaf: u32,
    subleaf: u32,
    registers: Registers,
}

/// Why a directory cannot be read as a captured tree. Each is a clause after the directory's name.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// It cannot be opened.
    #[error("{}", plainly(.0))]
    Unusable(io::Error),
    /// It is not a directory.
    #[error("is not a directory; a captured tree is one")]
    NoDirectory,
    /// It contains nothing from a capture.
    #[error("has no {NAME}, proc or sys; `tollgate inspect --capture` makes such a tree")]
    NoTree,
    /// The record of calls cannot be read.
    #[error("has an unusable {NAME}: {0}")]
    Unreadable(String),
}

pub(crate) fn is_record(bytes: &[u8]) -> bool {
    CapturedRecord::parse(bytes).map(|record| record.leaves()).is_ok()
}

fn in_brief(error: serde_json::Error) -> String {
    text::shorten(&error.to_string()).into_owned()
}

fn plainly(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "may not be read".to_owned(),
        _ => format!("cannot be read: {}", text::plainly(error)),
    }
}

impl CapturedRecord {
    pub fn new(recording: &Recording, leaves: Option<&Leaves>, directory: &Path) -> Self {
        let cpuid = leaves.map(|leaves| {
            let leaf = |((leaf, subleaf), registers)| Leaf { leaf, subleaf, registers };
            leaves.all().map(leaf).collect()
        });
        let failed = recording.seen.iter().filter(|(_, seen)| !seen.errors.is_empty());
        Self {
            format: FORMAT,
            directory: Some(directory.to_owned()),
            cpuid,
            calls: recording.calls.clone(),
            errors: failed.map(|(path, seen)| (path.clone(), seen.errors.clone())).collect(),
        }
    }

    /// Reads a tree's record; empty if it has no such file. Fails if it is not a captured tree or the file is invalid.
    pub fn read(root: &Path) -> Result<Self, TreeError> {
        let metadata = std::fs::metadata(root).map_err(TreeError::Unusable)?;
        if !metadata.is_dir() {
            return Err(TreeError::NoDirectory);
        }
        let bytes = match read_file(&root.join(NAME)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let has = |name: &str| root.join(name).symlink_metadata().is_ok();
                return if has("proc") || has("sys") { Ok(Self::default()) } else { Err(TreeError::NoTree) };
            }
            Err(error) => return Err(TreeError::Unreadable(text::plainly(&error))),
        };
        Self::parse(&bytes).map_err(TreeError::Unreadable)
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err("it is larger than 1 MiB, the limit for a capture's".to_owned());
        }
        let document: Value = serde_json::from_slice(bytes).map_err(in_brief)?;
        match document.get("format").and_then(Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => return Err(format!("its format is {format}, but this program reads {FORMAT}")),
            None => return Err("it does not say its format".to_owned()),
        }
        Self::deserialize(&document).map_err(in_brief)
    }

    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        Ok(json)
    }

    pub fn leaves(&self) -> Option<Leaves> {
        let leaves = self.cpuid.as_ref()?;
        Some(leaves.iter().map(|leaf| ((leaf.leaf, leaf.subleaf), leaf.registers)).collect())
    }
}

/// A tree is untrusted: this file may be a link, a pipe, or of any size.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn another_form_is_refused_in_words() {
        let refused = |text: &str| CapturedRecord::parse(text.as_bytes()).unwrap_err();
        assert!(refused("{}").contains("does not say its format"));
        assert!(refused("{\"format\": 2}").contains("its format is 2"));
        assert!(refused("{\"format\": 1}").contains("missing field"));
        assert!(refused("{\"format\": 1, \"cal").contains("line 1"));
        assert!(CapturedRecord::parse(&vec![b' '; 2 << 20]).unwrap_err().contains("larger"));
        let deep = "[".repeat(100_000);
        assert!(CapturedRecord::parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_tree_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let error = |path: &Path| CapturedRecord::read(path).unwrap_err().to_string();
        assert!(error(directory.path()).contains("no tollgate.json, proc"));
        assert_eq!(error(&directory.path().join("none")), "does not exist");
        let file = directory.path().join(NAME);
        std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
        assert!(error(directory.path()).contains("unusable"));
        assert!(error(&file).contains("is not a directory"));
    }

    takes_any! { bytes in prop::collection::vec(any::<u8>(), 0..200) => CapturedRecord::parse(&bytes) }

    proptest! {
        #[test]
        fn what_was_written_is_read(calls in prop::collection::btree_map("[a-z() ]{1,9}", any::<i64>(), 0..5)) {
            let calls = calls.into_iter().map(|(name, value)| (name, Outcome::Value(value.into()))).collect();
            let record = CapturedRecord { format: FORMAT, calls, cpuid: Some(Vec::new()), ..CapturedRecord::default() };
            prop_assert_eq!(CapturedRecord::parse(&record.to_json().unwrap()), Ok(record));
        }
    }
}
