//! Reads run documents of unknown origin.

use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use tollgate_model::bounded::{self, Bounded};
use tollgate_model::run::{MAX_BYTES, ReadError, SCHEMA, seconds_between};
use tollgate_model::text::{plainly, shorten};
use tollgate_model::{Environment, Fact, FactValue, Label, Part, Run, RunId, own};
use tollgate_os::paths::open_regular;

use crate::kind::RunKind;

pub(crate) const EXTENSION: &str = "json";

/// Why a file is not a run: the predicate of a sentence whose subject is the file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file does not exist.
    #[error("does not exist")]
    Absent,
    /// It cannot be opened.
    #[error("cannot be read: {}", plainly(.0))]
    Unreadable(io::Error),
    /// It is a directory.
    #[error("is a directory; a run document is a file")]
    Directory,
    /// It holds the lines of a run.
    #[error("holds lines without samples; the run itself is in runs/ beside it")]
    Lines,
    /// It holds the JSON output of a verb.
    #[error("is the output of --format json, which has no samples; {}", the_run(.kept.as_deref()))]
    Shown {
        /// The file of the run, if it was kept.
        kept: Option<String>,
    },
    /// It is not a run document.
    #[error(transparent)]
    Document(#[from] ReadError),
    /// Its name is that of another run.
    #[error("holds the run {0}, which does not match its name; rename it to {0}.{EXTENSION}")]
    AnotherRun(RunId),
    /// Its outline cannot be read.
    #[error("is not a run document: {}", shorten(&.0.to_string()))]
    Syntax(#[from] serde_json::Error),
}

/// A run was not kept; the message names the file.
#[derive(Debug, thiserror::Error)]
#[error("the run was not kept: {}: {why}", path.display())]
pub struct KeepError {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// Reads a run document.
///
/// # Errors
/// If the file is not a run.
pub fn open(path: &Path) -> Result<Run, OpenError> {
    read(path, File::open(path))
}

/// Like [`open`], for a file that was found and not named. It refuses a pipe or device that another user may have put there.
pub(crate) fn open_found(path: &Path) -> Result<Run, OpenError> {
    read(path, open_regular(path).map_err(io::Error::from))
}

fn read(path: &Path, opened: io::Result<File>) -> Result<Run, OpenError> {
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::Absent,
        _ => OpenError::Unreadable(error),
    })?;
    let metadata = file.metadata().map_err(OpenError::Unreadable)?;
    if metadata.is_dir() {
        return Err(OpenError::Directory);
    }
    if path.extension().is_some_and(|extension| extension == "ndjson") {
        return Err(OpenError::Lines);
    }
    if metadata.is_file() && metadata.len() > MAX_BYTES {
        return Err(ReadError::TooLarge.into());
    }
    Run::read(file).map_err(|error| {
        let is_json = matches!(error, ReadError::Syntax(_) | ReadError::Invalid(_));
        match part::<Shown>(path) {
            Ok(shown) if is_json && shown.is_one() => OpenError::Shown { kept: shown.kept },
            _ => error.into(),
        }
    })
}

fn the_run(kept: Option<&str>) -> String {
    match kept {
        Some(file) => format!("the run is {}", shorten(file)),
        None => "--out FILE writes the run".to_owned(),
    }
}

/// Fields of the JSON output of a run, a session, commands or a trace. A run document has none of them.
#[derive(Deserialize)]
struct Shown {
    kept: Option<String>,
    quality: Option<IgnoredAny>,
    comparison: Option<IgnoredAny>,
    calls: Option<IgnoredAny>,
}

impl Shown {
    fn is_one(&self) -> bool {
        self.quality.is_some() || self.comparison.is_some() || self.calls.is_some()
    }
}

/// The part of a run document that a list shows, without the samples.
#[derive(Debug, Deserialize)]
pub struct Outline {
    schema: u64,
    pub(crate) id: RunId,
    /// The user's name for the run.
    pub label: Option<Label>,
    /// The kind of environment.
    pub environment: Environment,
    /// Its part in a session of several environments.
    #[serde(default)]
    pub session: Option<Part>,
    /// RFC 3339, UTC.
    pub started: String,
    finished: String,
    facts: Asked,
    #[serde(deserialize_with = "bounded::measurements")]
    measurements: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Asked {
    #[serde(rename = "run.patterns")]
    patterns: Option<Fact>,
}

#[derive(Debug, Deserialize)]
struct Row {
    benchmark: String,
    status: Status,
    #[serde(default, deserialize_with = "bounded::entries")]
    traced: Vec<Execution>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Status {
    Measured,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Execution {
    #[serde(deserialize_with = "bounded::texts")]
    command: Vec<String>,
}

impl Outline {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        /// A document of another schema may lack the other fields.
        #[derive(Deserialize)]
        struct SchemaOnly {
            schema: u64,
        }
        let outline = part::<Self>(path);
        let schema = match &outline {
            Ok(outline) => Some(outline.schema),
            Err(_) => part::<SchemaOnly>(path).ok().map(|document| document.schema),
        };
        match schema {
            Some(found) if found != u64::from(SCHEMA) => Err(ReadError::Schema { found }.into()),
            _ => outline,
        }
    }

    /// Returns the kind of run.
    pub fn kind(&self) -> RunKind {
        RunKind::by_first(self.measurements.first().map(|row| row.benchmark.as_str()))
    }

    /// Whether it has a row of a benchmark, and if `with_figure` one that was measured.
    pub fn has(&self, benchmark: &str, with_figure: bool) -> bool {
        let mut rows = self.measurements.iter().filter(|row| row.benchmark == benchmark);
        rows.any(|row| !with_figure || row.status == Status::Measured)
    }

    /// Returns how long the run took, in seconds.
    pub fn seconds(&self) -> Option<f64> {
        seconds_between(&self.started, &self.finished)
    }

    /// Returns the patterns that chose its cases; empty means all. `None` if it does not have that fact.
    pub fn patterns(&self) -> Option<Vec<String>> {
        match self.facts.patterns.as_ref()?.value()? {
            FactValue::List(patterns) => Some(patterns.clone()),
            _ => None,
        }
    }

    /// Returns the traced command, if the run is a trace.
    pub fn command(&self) -> Option<&[String]> {
        let is_trace = self.kind() == RunKind::Trace;
        let first = self.measurements.first().filter(|_| is_trace)?.traced.first()?;
        Some(&first.command)
    }

    /// Returns the number of measurements, without those of the program itself.
    pub fn rows(&self) -> usize {
        self.measurements.iter().filter(|row| !own::is_own(&row.benchmark)).count()
    }
}

fn part<T: DeserializeOwned>(path: &Path) -> Result<T, OpenError> {
    let file = open_regular(path).map_err(|why| OpenError::Unreadable(why.into()))?;
    Ok(serde_json::from_reader(BufReader::new(Bounded::new(file)))?)
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) label: Option<String>,
    pub(crate) session: Option<Part>,
}

/// Reads the head of a document up to the field after the session, so that samples are not read.
pub(crate) fn head_of(source: impl Read) -> Head {
    let found = RefCell::new(Head::default());
    // The visitor stops in the middle of the document, which the deserializer reports as an error.
    let source = BufReader::new(Bounded::new(source));
    let _ = serde_json::Deserializer::from_reader(source).deserialize_map(UpToHead(&found));
    found.into_inner()
}

struct UpToHead<'a>(&'a RefCell<Head>);

impl<'de> Visitor<'de> for UpToHead<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a run document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "label" => self.0.borrow_mut().label = fields.next_value()?,
                "session" => {
                    self.0.borrow_mut().session = fields.next_value()?;
                    return Ok(());
                }
                // In documents of this program it follows both.
                "started" => return Ok(()),
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_found_without_the_rest_of_the_document() {
        let label = |text: &str| head_of(text.as_bytes()).label;
        assert_eq!(
            label(r#"{"schema": 2,"tool":{"label":"no"},"label":"yes","environment":"vm","started":"#),
            Some("yes".into())
        );
        assert_eq!(label(r#"{"schema": 2,"label":null,"environment":"vm"}"#), None);
        assert_eq!(label("not json"), None);
        assert_eq!(label(r#"{"label":7}"#), None);
        let part = r#"{"id":"s","environment":"host","place":1,"of":2,"paired":true}"#;
        let head = head_of(format!(r#"{{"label":"yes","session":{part},"started":"#).as_bytes());
        assert_eq!(head.session.expect("a part").place, 1);
        assert_eq!(head.label.as_deref(), Some("yes"));
        assert_eq!(head_of(&br#"{"label":"yes","session":{"id":7},"started":""#[..]).session, None);
    }
}
