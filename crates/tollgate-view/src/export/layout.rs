//! The files of a run in a directory that many machines share, or sync to one place:
//!
//! ```text
//! schema=1/date=2026-11-21/20261121-015427-3f2a91c4.ndjson   the long form
//! env/8d0c…e1.json                                           the facts, once for all machines that are equal
//! runs/20261121-015427-3f2a91c4.json                         the run itself, with its samples
//! ```
//!
//! A machine only ever adds files, under names that no other has: nothing has to be locked, and no server has to be asked.

use serde::{Deserialize, Serialize};
use tollgate_model::compare::is_volatile;
use tollgate_model::run::ReadError;
use tollgate_model::text::{excerpt, shorten};
use tollgate_model::{Fact, Facts, Run, RunId, Unknown};

use super::hash::fnv1a_128;
use super::row::{self, SCHEMA};
use super::time::{Date, Moment};

/// The directory with the facts.
pub const ENVIRONMENTS: &str = "env";
/// The directory with the run documents.
pub const DOCUMENTS: &str = "runs";

/// The directory with the lines of this schema.
pub fn rows_directory() -> String {
    format!("schema={SCHEMA}")
}

/// The directory of a day, in that of the schema.
pub fn day_directory(date: Date) -> String {
    format!("date={date}")
}

/// A file of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Beneath the directory's root.
    pub path: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What is kept of a run, in the order in which it is written: whoever sees the lines finds the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The facts.
    pub facts: File,
    /// The run itself.
    pub document: File,
    /// The lines.
    pub rows: File,
}

/// Why a run has no place in the directory.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// No day to keep it under.
    #[error("says that it started {:?}, which is no moment such as 2026-11-21T01:54:27Z", excerpt(.started))]
    NoDay {
        /// What it says.
        started: String,
    },
    /// It cannot be written as a document.
    #[error(transparent)]
    Document(#[from] ReadError),
    /// It cannot be written as lines.
    #[error("cannot be written as JSON: {0}")]
    Rows(#[from] serde_json::Error),
}

/// What is kept of a run.
///
/// # Errors
/// When it does not say on which day it was made, or contradicts itself.
pub fn files(run: &Run) -> Result<Files, LayoutError> {
    let date = day(&run.started).ok_or_else(|| LayoutError::NoDay { started: run.started.clone() })?;
    let facts = kept(&run.facts);
    let id = id_of(&facts);
    Ok(Files {
        facts: File { path: format!("{ENVIRONMENTS}/{id}.json"), bytes: listed(&facts, &id)?.into_bytes() },
        document: File { path: document_path(&run.id), bytes: run.to_json()? },
        rows: File { path: rows_path(date, &run.id), bytes: row::ndjson(run)?.into_bytes() },
    })
}

/// The day of a moment in a run document.
pub fn day(started: &str) -> Option<Date> {
    started.parse().ok().map(|moment: Moment| moment.date())
}

/// Where the lines of a run are.
pub fn rows_path(date: Date, id: &RunId) -> String {
    format!("{}/{}/{id}.ndjson", rows_directory(), day_directory(date))
}

/// Where the document of a run is.
pub fn document_path(id: &RunId) -> String {
    format!("{DOCUMENTS}/{id}.json")
}

/// A fact as the file of the environment has it: what it is, and neither where it was read nor in which words it was refused, which
/// name directories and containers of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The file's name, for joins.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub env_id: String,
    /// Its dotted name.
    pub fact: String,
    /// `known`, `absent`, `refused` or `unreadable`.
    pub status: String,
    /// As text; null where it is not known.
    pub value: Option<String>,
}

/// Facts that tell one machine from its equals: disks by their numbers.
const OF_ONE_MACHINE: [&str; 2] = ["kernel.command_line", "files.source"];

/// The facts that last, by name: neither what changes by the moment, nor what only one machine can have.
fn kept(facts: &Facts) -> Vec<Kept> {
    let lasting =
        facts.iter().filter(|(name, _)| !is_volatile(name) && !OF_ONE_MACHINE.contains(&name.as_str()));
    let kept = |(name, fact): (&String, &Fact)| {
        let (status, value) = match fact {
            Fact::Known { value, .. } => ("known", Some(value.to_string())),
            Fact::Unknown { why: Unknown::Absent(_) } => ("absent", None),
            Fact::Unknown { why: Unknown::Refused(_) } => ("refused", None),
            Fact::Unknown { why: Unknown::Unreadable(_) } => ("unreadable", None),
        };
        Kept { env_id: String::new(), fact: name.clone(), status: status.to_owned(), value }
    };
    lasting.map(kept).collect()
}

/// The name of the file of these facts.
pub fn env_id(facts: &Facts) -> String {
    id_of(&kept(facts))
}

/// FNV-1a of 128 bits over each fact's `["name","status","value"]` as JSON without blanks, and a line feed each, in hexadecimal.
fn id_of(facts: &[Kept]) -> String {
    let mut hashed = String::new();
    for kept in facts {
        // Texts can always be written as JSON.
        hashed.push_str(&serde_json::to_string(&(&kept.fact, &kept.status, &kept.value)).unwrap_or_default());
        hashed.push('\n');
    }
    format!("{:032x}", fnv1a_128(hashed.as_bytes()))
}

/// A JSON array with a line for each fact.
fn listed(facts: &[Kept], id: &str) -> Result<String, serde_json::Error> {
    let lines: Result<Vec<String>, _> = facts
        .iter()
        .map(|kept| serde_json::to_string(&Kept { env_id: id.to_owned(), ..kept.clone() }))
        .collect();
    Ok(format!("[\n{}\n]\n", lines?.join(",\n")))
}

/// Checks a file of facts that anybody may have written against the name that it has.
///
/// # Errors
/// What is wrong with it: the predicate of a sentence whose subject is the file.
pub fn check_facts(name: &str, text: &[u8]) -> Result<(), String> {
    let facts: Vec<Kept> = serde_json::from_slice(text)
        .map_err(|error| format!("holds no facts: {}", shorten(&error.to_string())))?;
    if facts.iter().any(|kept| kept.env_id != name) {
        return Err("holds facts of another name".to_owned());
    }
    match id_of(&facts) {
        id if id == name => Ok(()),
        id => Err(format!("holds other facts than its name says: theirs is {id}")),
    }
}
