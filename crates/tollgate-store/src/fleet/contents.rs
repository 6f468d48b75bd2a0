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

/// The longest line that is read. Histograms and texts are bounded, so no line of this program is longer.
const LONGEST_LINE: u64 = 256 << 10;

/// Why the files of a directory are unknown: a sentence.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// It cannot be read.
    #[error("{} cannot be read: {}", .0.display(), plainly(.1))]
    Unreadable(PathBuf, io::Error),
    /// No run was ever stored there.
    #[error("{} is not a directory of stored runs; `tollgate run --store DIR` makes one", .0.display())]
    NoStore(PathBuf),
}

/// The files of the layout. Anything else in the directory is ignored.
pub(crate) struct Contents {
    tree: Tree,
    pub(crate) rows: Vec<Rows>,
    pub(crate) documents: BTreeSet<RunId>,
    pub(crate) fact_sets: usize,
    /// The size of all files.
    pub(crate) bytes: u64,
}

pub(crate) struct Rows {
    pub(crate) date: Date,
    pub(crate) id: RunId,
    /// Relative to the directory.
    pub(crate) path: String,
    pub(crate) size: u64,
}

impl Contents {
    /// Reads all names. Fails if the directory cannot be read, or if no run was ever stored in it.
    pub(crate) fn read(directory: &Path) -> Result<Self, ContentsError> {
        let unreadable = |error: io::Error| ContentsError::Unreadable(directory.to_owned(), error);
        let tree = Tree::open(directory).map_err(unreadable)?;
        if !is_store(directory) {
            return Err(ContentsError::NoStore(directory.to_owned()));
        }
        let mut contents =
            Self { tree, rows: Vec::new(), documents: BTreeSet::new(), fact_sets: 0, bytes: 0 };
        contents.look().map_err(unreadable)?;
        Ok(contents)
    }

    fn look(&mut self) -> io::Result<()> {
        for entry in self.tree.entries()?.into_iter().filter(|entry| entry.kind == FileType::Directory) {
            let inner = || self.tree.child(&entry.name);
            match entry.name.as_str() {
                ENVIRONMENTS => {
                    for file in inner()?.entries()?.iter().filter(|file| is_facts(file)) {
                        self.fact_sets += 1;
                        self.bytes += file.size;
                    }
                }
                DOCUMENTS => {
                    for file in inner()?.entries()? {
                        let Some(id) = run_of(&file, ".json") else { continue };
                        self.documents.insert(id);
                        self.bytes += file.size;
                    }
                }
                name if name == rows_directory() => {
                    let days = inner()?;
                    self.look_at_days(&days, name)?;
                }
                // Other directories may hold anything.
                _ => {}
            }
        }
        Ok(())
    }

    fn look_at_days(&mut self, days: &Tree, path: &str) -> io::Result<()> {
        for day in days.entries()?.into_iter().filter(|day| day.kind == FileType::Directory) {
            let Some(date) = day.name.strip_prefix("date=").and_then(|date| date.parse::<Date>().ok()) else {
                continue;
            };
            for file in days.child(&day.name)?.entries()? {
                let Some(id) = run_of(&file, ".ndjson") else { continue };
                let path = format!("{path}/{}/{}", day.name, file.name);
                self.rows.push(Rows { date, id, path, size: file.size });
                self.bytes += file.size;
            }
        }
        Ok(())
    }

    /// Reads the first of a run's lines, which has the fields that all share; `None` for an empty file. The error is a predicate.
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
}

fn is_facts(entry: &Entry) -> bool {
    let is_hash =
        |name: &str| name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    entry.kind == FileType::RegularFile && entry.name.strip_suffix(".json").is_some_and(is_hash)
}

fn run_of(entry: &Entry, extension: &str) -> Option<RunId> {
    (entry.kind == FileType::RegularFile).then(|| entry.name.strip_suffix(extension)?.parse().ok()).flatten()
}
