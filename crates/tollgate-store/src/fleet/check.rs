//! Reads every file of a directory of stored runs and reports faults.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use tollgate_model::text::plainly;
use tollgate_model::{Run, RunId};
use tollgate_view::export::facts;
use tollgate_view::export::row::ExportedRow;
use tollgate_view::export::time::Date;

use super::contents::{Contents, ContentsError, DirectoryEntry, LONGEST_LINE, What};
use super::layout::day;

/// The largest file of lines that is read: a run has at most 4096 cases, and few of them long histograms.
const MOST_ROWS: u64 = 128 << 20;
/// The largest file of facts that is read. A run has at most 4096 facts, and all that are known of a machine take some 50 KiB.
const MOST_FACTS: u64 = 16 << 20;

/// What is there, and its faults.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CheckedStore"))]
pub struct Checked {
    /// The directory.
    pub dir: String,
    /// Files of lines.
    pub runs: usize,
    /// Their lines.
    pub rows: usize,
    /// Files of facts.
    pub fact_sets: usize,
    /// Run documents.
    pub documents: usize,
    /// Files that are damaged, by path.
    pub faults: Vec<Fault>,
    /// Directories of another schema, which are not looked at.
    pub unchecked: Vec<String>,
}

/// The fault of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FaultOfFile"))]
pub struct Fault {
    /// Beneath the directory.
    pub path: String,
    /// What is wrong: the predicate of a sentence whose subject is the file.
    pub fault: String,
}

/// Reads every file of a directory.
///
/// # Errors
/// A directory that is no store.
pub fn check(directory: &Path) -> Result<Checked, ContentsError> {
    let contents = Contents::read(directory)?;
    let fact_sets = contents.fact_sets();
    let mut checked = Checked {
        dir: directory.display().to_string(),
        runs: 0,
        rows: 0,
        fact_sets: fact_sets.len(),
        documents: contents.documents().len(),
        faults: Vec::new(),
        unchecked: Vec::new(),
    };
    for found in &contents.found {
        let outcome = match &found.what {
            What::Rows(date, id) => {
                checked.runs += 1;
                check_rows(&contents, found, *date, id, &fact_sets).map(|rows| checked.rows += rows)
            }
            What::Facts(name) => {
                read(&contents, found, MOST_FACTS).and_then(|bytes| facts::check(name, &bytes))
            }
            What::Document(id) => check_document(&contents, found, id),
            What::Day => Ok(()),
            What::Leftover => {
                Err("was being written when its writer was stopped; `tollgate store prune` removes it"
                    .to_owned())
            }
            What::Stray(why) => Err((*why).to_owned()),
            What::OtherSchema => {
                checked.unchecked.push(found.path.clone());
                Ok(())
            }
        };
        if let Err(fault) = outcome {
            checked.faults.push(Fault { path: found.path.clone(), fault });
        }
    }
    Ok(checked)
}

fn read(contents: &Contents, found: &DirectoryEntry, most: u64) -> Result<Vec<u8>, String> {
    let bytes = contents
        .tree
        .read(&found.path, most)
        .map_err(|error| format!("cannot be read: {}", plainly(&error)))?;
    if bytes.len() as u64 > most { Err(format!("is larger than {} MiB", most >> 20)) } else { Ok(bytes) }
}

/// How many lines there are.
fn check_rows(
    contents: &Contents,
    found: &DirectoryEntry,
    date: Date,
    id: &RunId,
    fact_sets: &BTreeSet<&str>,
) -> Result<usize, String> {
    let bytes = read(contents, found, MOST_ROWS)?;
    if bytes.last().is_some_and(|last| *last != b'\n') {
        return Err("is cut off: its last line has no end".to_owned());
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| "is not UTF-8".to_owned())?;
    let mut seen = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        check_row(line, date, id, fact_sets, &mut seen)
            .map_err(|why| format!("{why}, in line {}", number + 1))?;
    }
    Ok(text.lines().count())
}

fn check_row(
    line: &str,
    date: Date,
    id: &RunId,
    fact_sets: &BTreeSet<&str>,
    seen: &mut BTreeSet<(String, String, String)>,
) -> Result<(), String> {
    if line.len() as u64 > LONGEST_LINE {
        return Err("has a line that is too long".to_owned());
    }
    let row = ExportedRow::parse(line)?;
    if row.run != id.as_ref() {
        return Err("has the lines of another run than its name says".to_owned());
    }
    if day(&row.started) != Some(date) {
        return Err("lies under another day than its run began on".to_owned());
    }
    if !fact_sets.contains(row.env_id.as_ref()) {
        return Err(format!("refers to missing facts: env/{}.json", row.env_id));
    }
    let is_new = seen.insert((row.benchmark.into_owned(), row.params.into_owned(), row.metric.into_owned()));
    if is_new { Ok(()) } else { Err("has the same metric twice".to_owned()) }
}

fn check_document(contents: &Contents, found: &DirectoryEntry, id: &RunId) -> Result<(), String> {
    let file =
        contents.tree.file(&found.path).map_err(|error| format!("cannot be read: {}", plainly(&error)))?;
    let run = Run::read(file).map_err(|error| error.to_string())?;
    if run.id == *id { Ok(()) } else { Err("holds another run than its name says".to_owned()) }
}
