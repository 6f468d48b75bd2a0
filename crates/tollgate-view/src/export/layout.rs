//! The files of a run in a directory that many machines share or synchronize:
//!
//! ```text
//! schema=2/date=2026-11-21/20261121-015427-3f2a91c4.ndjson   the long form
//! env/8d0c…e1.json                                           the facts, once for all equal machines
//! runs/20261121-015427-3f2a91c4.json                         the run itself, with its samples
//! ```
//!
//! A machine only adds files, under names that no other machine has: there is no lock and no server, and copying two stores into one
//! merges them.
//!
//! A store is only added to. File names are unique across machines and facts are named by their content:
//! nothing is locked, and copying merges two stores.

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

/// The files of a run, in the order of writing: a reader of the lines finds the other two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The facts.
    pub facts: File,
    /// The run itself.
    pub document: File,
    /// The lines.
    pub rows: File,
}

/// Why a run cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// It has no day.
    #[error("started at {:?}, which is no time such as 2026-11-21T01:54:27Z", excerpt(.started))]
    NoDay {
        /// Its text.
        started: String,
    },
    /// It cannot be written as a document.
    #[error(transparent)]
    Document(#[from] ReadError),
    /// It cannot be written as lines.
    #[error("cannot be written as JSON: {0}")]
    Rows(#[from] serde_json::Error),
}

/// The files of a run.
///
/// # Errors
/// When it has no day, or contradicts itself.
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

/// The path of a run's lines.
pub fn rows_path(date: Date, id: &RunId) -> String {
    format!("{}/{}/{id}.ndjson", rows_directory(), day_directory(date))
}

/// The path of a run's document.
pub fn document_path(id: &RunId) -> String {
    format!("{DOCUMENTS}/{id}.json")
}

/// A fact in the file of the environment. Sources and the texts of errors are left out: they name directories and containers of one
/// machine.
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
    /// As text; null where it is unknown.
    pub value: Option<String>,
}

/// Facts that differ between equal machines: the numbers of disks.
const OF_ONE_MACHINE: [&str; 2] = ["kernel.command_line", "files.source"];

/// The facts that are neither volatile nor of one machine, by name.
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
        // Text always converts to JSON.
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

/// Checks an untrusted file of facts against its name.
///
/// # Errors
/// The fault: the predicate of a sentence whose subject is the file.
pub fn check_facts(name: &str, text: &[u8]) -> Result<(), String> {
    let facts: Vec<Kept> = serde_json::from_slice(text)
        .map_err(|error| format!("holds no facts: {}", shorten(&error.to_string())))?;
    if facts.iter().any(|kept| kept.env_id != name) {
        return Err("holds facts of another name".to_owned());
    }
    match id_of(&facts) {
        id if id == name => Ok(()),
        id => Err(format!("holds other facts than its name says: their id is {id}")),
    }
}
