//! The files of a directory of stored runs, by the layout.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use tollgate_model::RunId;
use tollgate_model::text::plainly;
use tollgate_view::export::row::ExportedRow;
use tollgate_view::export::time::Date;

use super::layout::{DOCUMENTS, ENVIRONMENTS, is_store, rows_directory};
use super::tree::{Entry, Tree};

/// The longest line that is looked at: histograms and texts are bounded, so none of ours is longer.
pub(crate) const LONGEST_LINE: u64 = 256 << 10;

/// The reason why the files of a directory are not known: a sentence.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// It cannot be read.
    #[error("{} cannot be read: {}", .0.display(), plainly(.1))]
    Unreadable(PathBuf, io::Error),
    /// No run was ever stored there.
    #[error("{} is no directory of stored runs; `tollgate run --store DIR` makes one", .0.display())]
    NoStore(PathBuf),
}

pub(crate) struct Contents {
    pub(crate) tree: Tree,
    pub(crate) found: Vec<DirectoryEntry>,
}

/// Something in the directory.
pub(crate) struct DirectoryEntry {
    /// Beneath the directory.
    pub(crate) path: String,
    pub(crate) what: What,
    pub(crate) size: u64,
    /// Seconds since 1970 at which it was last written.
    pub(crate) modified: i64,
}

/// The kind of a path by the layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// The lines of a run.
    Rows(Date, RunId),
    /// The facts with this name.
    Facts(String),
    Document(RunId),
    /// The directory of a day.
    Day,
    /// A file that was being written, and is not any more.
    Leftover,
    /// Lines of another schema.
    OtherSchema,
    /// Something that has no business there.
    Stray(&'static str),
}

impl Contents {
    /// Looks at all names. An error where it cannot be read, or no run was ever stored in it.
    pub(crate) fn read(directory: &Path) -> Result<Self, ContentsError> {
        let unreadable = |error: io::Error| ContentsError::Unreadable(directory.to_owned(), error);
        let tree = Tree::open(directory).map_err(unreadable)?;
        if !is_store(directory) {
            return Err(ContentsError::NoStore(directory.to_owned()));
        }
        let found = look(&tree).map_err(unreadable)?;
        Ok(Self { tree, found })
    }

    /// The first line of a run's lines, which has the fields that all lines share. None for an empty file. The error is the
    /// predicate of a sentence whose subject is the file.
    pub(crate) fn first_row(&self, path: &str) -> Result<Option<ExportedRow<'static>>, String> {
        let bytes = self
            .tree
            .read(path, LONGEST_LINE)
            .map_err(|error| format!("cannot be read: {}", plainly(&error)))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = std::str::from_utf8(line).map_err(|_| "is not UTF-8 in its first line".to_owned())?;
        ExportedRow::parse(line).map(Some).map_err(|why| format!("{why}, in its first line"))
    }

    /// The runs whose documents are there.
    pub(crate) fn documents(&self) -> BTreeSet<&RunId> {
        let documents = self.found.iter().filter_map(|found| match &found.what {
            What::Document(id) => Some(id),
            _ => None,
        });
        documents.collect()
    }

    /// The names of the facts that are there.
    pub(crate) fn fact_sets(&self) -> BTreeSet<&str> {
        let sets = self.found.iter().filter_map(|found| match &found.what {
            What::Facts(name) => Some(name.as_str()),
            _ => None,
        });
        sets.collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.found.iter().map(|found| found.size).fold(0, u64::saturating_add)
    }
}

fn look(root: &Tree) -> io::Result<Vec<DirectoryEntry>> {
    let mut found = Vec::new();
    for entry in root.entries()? {
        let is_directory = entry.kind == FileType::Directory;
        match entry.name.as_str() {
            name if name == rows_directory() && is_directory => {
                look_at_days(&root.child(name)?, name, &mut found)?
            }
            name @ (ENVIRONMENTS | DOCUMENTS) if is_directory => {
                for entry in root.child(name)?.entries()? {
                    let what = if name == ENVIRONMENTS { facts(&entry) } else { document(&entry) };
                    found.push(entry_of(name, entry, what));
                }
            }
            name if name.starts_with("schema=") && is_directory => {
                let (path, what, modified) = (name.to_owned(), What::OtherSchema, entry.modified);
                found.push(DirectoryEntry { path, what, size: 0, modified });
            }
            name if is_leftover(name) => found.push(entry_of("", entry, What::Leftover)),
            // Beside our directories there may be anything.
            _ => {}
        }
    }
    Ok(found)
}

fn look_at_days(days: &Tree, path: &str, found: &mut Vec<DirectoryEntry>) -> io::Result<()> {
    for entry in days.entries()? {
        let date = entry.name.strip_prefix("date=").and_then(|date| date.parse::<Date>().ok());
        let (Some(date), FileType::Directory) = (date, entry.kind) else {
            let what = stray(&entry, "is not the directory of a day, such as date=2026-11-21");
            found.push(entry_of(path, entry, what));
            continue;
        };
        let day = days.child(&entry.name)?;
        let path = format!("{path}/{}", entry.name);
        for entry in day.entries()? {
            let what = match name_of(&entry, ".ndjson") {
                Some(id) => What::Rows(date, id),
                None => stray(&entry, "is not the lines of a run, such as 20261121-015427-3f2a91c4.ndjson"),
            };
            found.push(entry_of(&path, entry, what));
        }
        found.push(DirectoryEntry { path, what: What::Day, size: 0, modified: entry.modified });
    }
    Ok(())
}

fn facts(entry: &Entry) -> What {
    let is_hash =
        |name: &&str| name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match entry.name.strip_suffix(".json").filter(is_hash) {
        Some(name) if entry.kind == FileType::RegularFile => What::Facts(name.to_owned()),
        _ => stray(entry, "is not a file of facts, which has 32 hexadecimal digits and .json"),
    }
}

fn document(entry: &Entry) -> What {
    match name_of(entry, ".json") {
        Some(id) => What::Document(id),
        None => stray(entry, "is not a run document, such as 20261121-015427-3f2a91c4.json"),
    }
}

/// The run whose file this is.
fn name_of(entry: &Entry, extension: &str) -> Option<RunId> {
    (entry.kind == FileType::RegularFile).then(|| entry.name.strip_suffix(extension)?.parse().ok()).flatten()
}

fn stray(entry: &Entry, otherwise: &'static str) -> What {
    match entry.kind {
        FileType::RegularFile if is_leftover(&entry.name) => What::Leftover,
        FileType::Symlink => What::Stray("is a symbolic link, and none is followed"),
        _ => What::Stray(otherwise),
    }
}

/// `.NAME.XXXXXXXX.tmp`: what a file is called while it is written where the file system has no unnamed files.
fn is_leftover(name: &str) -> bool {
    let parts = || name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.');
    parts().is_some_and(|(name, number)| {
        !name.is_empty() && number.len() == 8 && number.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

fn entry_of(directory: &str, entry: Entry, what: What) -> DirectoryEntry {
    let path = if directory.is_empty() { entry.name } else { format!("{directory}/{}", entry.name) };
    DirectoryEntry { path, what, size: entry.size, modified: entry.modified }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_called_as_the_writer_calls_them() {
        for name in [".20261121-015427-3f2a91c4.ndjson.00c0ffee.tmp", ".try.0123abcd.tmp"] {
            assert!(is_leftover(name), "{name}");
        }
        for name in [".tmp", "x.00c0ffee.tmp", ".x.tmp", "..00c0ffee.tmp", ".x.00c0ffe.tmp", ".bashrc"] {
            assert!(!is_leftover(name), "{name}");
        }
    }
}
