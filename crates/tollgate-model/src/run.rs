//! The run document, schema 2, and the reader of untrusted documents.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io::{BufReader, Read};
use std::rc::Rc;
use std::str::FromStr;
use std::time::SystemTime;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::bounded::{
    self, Account, Bounded, Fault, MAX_FACTS, MAX_PARAMS, MAX_PROCESSES, MAX_SAMPLES, MAX_TEXT, MAX_TEXTS,
};
use crate::events::{self, EventCounts};
use crate::fact::{Fact, FactValue};
use crate::measurement::{Case, Measured, Measurement, Outcome, ProcessRounds};
use crate::text::{commands_a_reader, excerpt, plainly, shorten};
use crate::versus::Command;

/// The only schema that this program writes and reads.
pub const SCHEMA: u32 = 2;

pub use crate::bounded::{MAX_BYTES, MAX_MEASUREMENTS};

/// The facts of an environment and the measurements made in it. Field order is the document's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Schema of the run document: 2. A reader refuses any other number: tollgate does not read documents of schema 1.
    #[serde(deserialize_with = "schema")]
    pub schema: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// Unique among kept runs; begins with the UTC time. 1 to 64 of `A-Z a-z 0-9 . _ + -`, beginning with a letter or digit, without
    /// `..`.
    pub id: RunId,
    /// The user's name for it, of the same characters, or None.
    pub label: Option<Label>,
    /// The innermost known layer.
    pub environment: Environment,
    /// Its part in a session, if the run belongs to a session of several environments. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Part>,
    /// Time of the first measurement.
    pub started: String,
    /// Time of the last one.
    pub finished: String,
    /// Facts by name.
    #[serde(deserialize_with = "bounded::facts")]
    pub facts: Facts,
    /// One object per case, in the order of the registry, including those of the engine's own benchmarks.
    #[serde(deserialize_with = "bounded::measurements")]
    pub measurements: Vec<Measurement>,
}

fn schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let found = u64::deserialize(deserializer)?;
    if found == u64::from(SCHEMA) {
        return Ok(SCHEMA);
    }
    bounded::stop(Fault::Schema(found));
    Err(D::Error::custom(format!("its schema is {found}")))
}

/// Facts by dotted name, such as `kernel.release`.
pub type Facts = BTreeMap<String, Fact>;

/// The part of a run in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SessionPart"))]
pub struct Part {
    /// The session, the same in each of its runs.
    pub id: RunId,
    /// The environment as the user named it: `host`, `container:seccomp=none`.
    pub environment: String,
    /// The environment that this name stands for, if it is the user's own: `vm:exact,append=audit=1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<String>,
    /// Its position among the environments of the session, from 0. The first is the base.
    pub place: u32,
    /// Number of environments of the session.
    pub of: u32,
    /// Whether its turns alternated with those of the base on one machine: process i and round r of both are then neighbours in
    /// time.
    pub paired: bool,
    /// The one setting of the machine that differed in this environment's turns. Absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knob: Option<Knob>,
    /// The states that were switched on in this environment's turns, and off in those of the base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<Switched>,
    /// The [command](#versus) that was compared there with others, or the build of [benches](benches.md). Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<Command>>,
}

impl Part {
    /// The part of an environment that is alone in its session.
    pub fn alone(id: RunId, environment: String) -> Self {
        Self {
            id,
            environment,
            stands_for: None,
            place: 0,
            of: 1,
            paired: true,
            knob: None,
            switches: Vec::new(),
            command: None,
        }
    }
}

/// A setting of the machine that a session alternated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Knob {
    /// Its file, such as `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub path: String,
    /// Its value before the session and in the turns of the base.
    pub was: String,
    /// Its value in this environment's turns.
    pub value: String,
}

/// A state of the machine that two commands set and take back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Switched {
    /// The user's name for it, such as `auditd`.
    pub name: String,
    /// The command that switches it on.
    pub on: String,
    /// The command that switches it off.
    pub off: String,
}

/// The program that wrote a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// `tollgate`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The kind of environment that a run was made in: its innermost known layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// The hardware: no other layer is known.
    Host,
    /// A virtual machine.
    Vm,
    /// A container, on hardware or in a virtual machine.
    Container,
    /// A kernel in user space between the program and the kernel, such as gVisor.
    Sandbox,
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Vm => "virtual machine",
            Self::Container => "container",
            Self::Sandbox => "sandbox",
        })
    }
}

const BUFFER: usize = 64 << 10;

/// The name of a kept run: letters, digits, `-` and `.`, since it becomes a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// A user's name for a run; safe as a file name and on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
#[serde(try_from = "String", into = "String")]
pub struct Label(String);

/// Why a label or id is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {given:?} {fault}; use 1 to 64 of A-Z a-z 0-9 . _ + - and begin with a letter or digit")]
pub struct NameError {
    what: &'static str,
    given: String,
    fault: &'static str,
}

/// `last` means the newest run, so it cannot be a label.
const RESERVED: &str = "last";
const MAX_NAME: usize = 64;

fn check_name(what: &'static str, name: &str) -> Result<(), NameError> {
    let fault = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME {
        "is too long"
    } else if name.contains('/') || name.contains("..") {
        "would be a path"
    } else if name == RESERVED {
        "means the newest run and cannot be a name"
    } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric())
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
    {
        "has a character that is not allowed"
    } else {
        return Ok(());
    };
    let given: String = name.chars().take(MAX_NAME + 1).collect();
    Err(NameError { what, given, fault })
}

macro_rules! checked_name {
    ($type:ty, $what:literal) => {
        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                check_name($what, &name)?;
                Ok(Self(name))
            }
        }
        impl FromStr for $type {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                name.to_owned().try_into()
            }
        }
        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}
checked_name!(RunId, "the run id");
checked_name!(Label, "the label");

/// Why a document is not a run.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source could not be read.
    #[error("cannot be read: {}", plainly(.0))]
    Io(#[from] std::io::Error),
    /// Larger than [`MAX_BYTES`].
    #[error("is larger than {} MiB, the limit for a run document", MAX_BYTES >> 20)]
    TooLarge,
    /// Has a text of more than [`MAX_TEXT`] bytes.
    #[error("is not a run document: it has a text of more than {} KiB", MAX_TEXT >> 10)]
    LongText,
    /// Not JSON, or cut off.
    #[error("is not a run document: {}", shorten(&.0.to_string()))]
    Syntax(serde_json::Error),
    /// The document ended before it was whole.
    #[error("is cut off: the document ends at line {line}, column {column}, before it is whole")]
    Truncated {
        /// From 1.
        line: usize,
        /// From 1, in bytes.
        column: usize,
    },
    /// Written by a version of the program with another schema.
    #[error("has schema {found}, but this tollgate reads schema {SCHEMA}: {}", remedy(*.found))]
    Schema {
        /// The document's schema.
        found: u64,
    },
    /// JSON of the right shape that contradicts itself.
    #[error("is not a run document: {0}")]
    Invalid(String),
}

fn remedy(found: u64) -> &'static str {
    if found > u64::from(SCHEMA) { "use a newer tollgate" } else { "measure again" }
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            serde_json::error::Category::Eof => {
                Self::Truncated { line: error.line(), column: error.column() }
            }
            serde_json::error::Category::Io => Self::Io(error.into()),
            _ => Self::Syntax(error),
        }
    }
}

impl Run {
    /// How long it took, in seconds.
    pub fn seconds(&self) -> Option<f64> {
        seconds_between(&self.started, &self.finished)
    }

    /// Reads a document of at most [`MAX_BYTES`], within the bounds of [`crate::bounded`], and checks that it does not contradict
    /// itself.
    ///
    /// # Errors
    /// See [`ReadError`]; each is the predicate of a sentence whose subject is the file.
    pub fn read(source: impl Read) -> Result<Self, ReadError> {
        let account = Rc::<Account>::default();
        let bounded = Bounded::with(source, MAX_BYTES, Rc::clone(&account));
        let read = account.during(|| serde_json::from_reader(BufReader::with_capacity(BUFFER, bounded)));
        let run: Self = match account.fault() {
            Some(Fault::TooLarge) => return Err(ReadError::TooLarge),
            Some(Fault::LongText) => return Err(ReadError::LongText),
            Some(Fault::Schema(found)) => return Err(ReadError::Schema { found }),
            None => read?,
        };
        run.validate().map_err(ReadError::Invalid)?;
        Ok(run)
    }

    /// [`Run::read`] of bytes in memory.
    ///
    /// # Errors
    /// As [`Run::read`].
    pub fn parse(text: &[u8]) -> Result<Self, ReadError> {
        Self::read(text)
    }

    /// The document as JSON, on one line that ends in a newline.
    ///
    /// # Errors
    /// When a value is not finite or contradicts another, which is a defect of the caller.
    pub fn to_json(&self) -> Result<Vec<u8>, ReadError> {
        self.validate().map_err(ReadError::Invalid)?;
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        if bounded::has_long_text(&text) { Err(ReadError::LongText) } else { Ok(text) }
    }

    /// The measurement of a case.
    pub fn measurement(&self, case: &crate::Case) -> Option<&Measurement> {
        self.measurements.iter().find(|measurement| measurement.case == *case)
    }

    /// Every case that has samples, in the order of the document.
    pub fn measured(&self) -> impl Iterator<Item = (&Case, &Measured)> {
        self.measurements
            .iter()
            .filter_map(|measurement| Some((&measurement.case, measurement.outcome.measured()?)))
    }

    fn validate(&self) -> Result<(), String> {
        for (name, text) in [("started", &self.started), ("finished", &self.finished)] {
            plain(name, text)?;
        }
        if let (Ok(started), Ok(finished)) = (moment(&self.started), moment(&self.finished))
            && finished < started
        {
            return Err(format!("it finished at {}, before it started at {}", self.finished, self.started));
        }
        plain("tool.name", &self.tool.name)?;
        plain("tool.version", &self.tool.version)?;
        if let Some(part) = &self.session {
            validate_part(part)?;
        }
        if self.facts.len() > MAX_FACTS {
            return Err(format!("it has more than {MAX_FACTS} facts"));
        }
        for (name, fact) in &self.facts {
            plain("a fact's name", name)?;
            if let Some(FactValue::Real(x)) = fact.value()
                && !x.is_finite()
            {
                return Err(format!("fact {} is not a finite number", excerpt(name)));
            }
        }
        if self.measurements.len() > MAX_MEASUREMENTS {
            return Err(format!("it has more than {MAX_MEASUREMENTS} measurements"));
        }
        let mut seen = HashSet::new();
        for measurement in &self.measurements {
            let case = &measurement.case;
            validate_case(case)?;
            if !seen.insert(case) {
                return Err(format!("{} occurs twice", excerpt(&case.to_string())));
            }
            if let Outcome::Measured(measured) = &measurement.outcome {
                validate_measured(measured)
                    .map_err(|fault| format!("{}: {fault}", excerpt(&case.to_string())))?;
            }
        }
        self.validate_sizes()
    }

    fn validate_sizes(&self) -> Result<(), String> {
        let sum =
            |size: fn(&Measured) -> usize| self.measured().map(|(_, measured)| size(measured)).sum::<usize>();
        let of_fact = |fact: &Fact| match fact.value() {
            Some(FactValue::List(texts)) => texts.len(),
            _ => 0,
        };
        let of_case = |measured: &Measured| {
            let traced = executions(measured).map(|traced| traced.command.len() + traced.notes.len());
            measured.notes.len() + traced.sum::<usize>()
        };
        let texts = self.facts.values().map(of_fact).sum::<usize>() + sum(of_case);
        for (number, most, what) in [
            (sum(|measured| measured.samples.len()), MAX_SAMPLES, "samples"),
            (sum(|measured| measured.processes.len()), MAX_PROCESSES, "processes"),
            (texts, MAX_TEXTS, "texts in lists"),
        ] {
            if number as u64 > most {
                return Err(format!("it has more than {most} {what}"));
            }
        }
        Ok(())
    }
}

/// Seconds from one RFC 3339 time to another. `None` if either is not a time, or if they are in the wrong order.
pub fn seconds_between(started: &str, finished: &str) -> Option<f64> {
    let length = moment(finished).ok()?.duration_since(moment(started).ok()?);
    Some(length.ok()?.as_secs_f64())
}

fn moment(text: &str) -> Result<SystemTime, humantime::TimestampError> {
    humantime::parse_rfc3339(text)
}

/// The most environments of a session.
pub const MAX_ENVIRONMENTS: u32 = 256;

/// Most bytes of an environment's name and of a setting's value: a name may hold a whole command.
const MAX_SETTING: usize = 4096;

fn validate_part(part: &Part) -> Result<(), String> {
    if part.of > MAX_ENVIRONMENTS {
        return Err(format!("its session has {} environments; the limit is {MAX_ENVIRONMENTS}", part.of));
    }
    if part.place >= part.of {
        return Err(format!(
            "its place in the session is {}; it must be at least 0 and below {}",
            part.place, part.of
        ));
    }
    if part.environment.is_empty() {
        return Err("session.environment is empty".into());
    }
    plain_within(MAX_SETTING, "session.environment", &part.environment)?;
    plain_within(MAX_SETTING, "session.stands_for", part.stands_for.as_deref().unwrap_or_default())?;
    if let Some(command) = &part.command {
        command.validate().map_err(|fault| format!("session.command {fault}"))?;
    }
    if part.switches.len() > MAX_ENVIRONMENTS as usize {
        return Err(format!("session.switches has more than {MAX_ENVIRONMENTS}"));
    }
    for Switched { name, on, off } in &part.switches {
        for text in [name, on, off] {
            plain_within(MAX_SETTING, "session.switches", text)?;
        }
    }
    let Some(knob) = &part.knob else { return Ok(()) };
    if !knob.path.starts_with('/') {
        return Err("session.knob.path is not absolute".into());
    }
    for (what, text) in [
        ("session.knob.path", &knob.path),
        ("session.knob.was", &knob.was),
        ("session.knob.value", &knob.value),
    ] {
        plain_within(MAX_SETTING, what, text)?;
    }
    Ok(())
}

fn validate_case(case: &Case) -> Result<(), String> {
    plain("a benchmark's name", &case.benchmark)?;
    if case.params.len() > MAX_PARAMS {
        return Err(format!("a case has more than {MAX_PARAMS} parameters"));
    }
    for (name, value) in &case.params {
        plain("a parameter's name", name)?;
        plain("a parameter", &value.to_string())?;
    }
    Ok(())
}

fn validate_measured(measured: &Measured) -> Result<(), String> {
    let faults = [
        (measured.ops_per_sample == 0, "ops_per_sample is 0"),
        (measured.clock_hz == 0, "clock_hz is 0"),
        (measured.samples.is_empty(), "it is measured but has no samples"),
        (measured.samples.iter().any(|sample| !sample.is_finite()), "a sample is not a finite number"),
    ];
    if let Some((_, fault)) = faults.into_iter().find(|(is_wrong, _)| *is_wrong) {
        return Err(fault.into());
    }
    measured.processes.iter().try_for_each(validate_rounds)?;
    let kept: u64 = measured.processes.iter().map(|process| process.kept() as u64).sum();
    let discarded: u64 = measured.processes.iter().map(|process| process.discarded.len() as u64).sum();
    if kept != measured.samples.len() as u64 || discarded != measured.discarded {
        return Err("the processes do not add up to its samples and discarded rounds".into());
    }
    if !measured.traced.is_empty() && measured.traced.len() != measured.samples.len() {
        return Err("not every sample has its execution".into());
    }
    for traced in executions(measured) {
        traced.validate().map_err(|fault| format!("a traced command {fault}"))?;
    }
    if let Some(counted) = &measured.counted {
        plain("what was counted", &counted.what)?;
    }
    measured.events.iter().try_for_each(validate_events)?;
    if measured.events.len() > events::MOST {
        return Err(format!("its events have more than {} sources", events::MOST));
    }
    plain("its group", &measured.group)
}

fn executions(measured: &Measured) -> impl Iterator<Item = &crate::Traced> {
    measured.traced.iter().chain(&measured.traced_apart)
}

fn validate_events(counts: &EventCounts) -> Result<(), String> {
    plain("a source of events", &counts.source)?;
    if counts.counts.len() > events::MOST {
        return Err(format!("a source counted more than {} kinds of events", events::MOST));
    }
    counts.counts.iter().try_for_each(|counter| plain("the name of an event", &counter.what))
}

fn validate_rounds(process: &ProcessRounds) -> Result<(), String> {
    let within = |rounds: &[u32]| {
        rounds.windows(2).all(|pair| pair[0] < pair[1])
            && rounds.last().is_none_or(|&round| round < process.rounds)
    };
    let took_part = |round: &u32| process.ran.as_ref().is_none_or(|ran| ran.binary_search(round).is_ok());
    if !process.ran.as_deref().is_none_or(within) {
        return Err("the rounds that a process ran are not ascending and within its rounds".into());
    }
    if !within(&process.discarded) || !process.discarded.iter().all(took_part) {
        return Err("the discarded rounds of a process are not ascending and within its rounds".into());
    }
    Ok(())
}

/// Names go to terminals unescaped, so they have no control characters and a bounded length.
fn plain(what: &str, text: &str) -> Result<(), String> {
    plain_within(256, what, text)
}

fn plain_within(most: usize, what: &str, text: &str) -> Result<(), String> {
    if text.len() > most || text.contains(commands_a_reader) {
        return Err(format!("{what} is too long or has characters that control a terminal"));
    }
    Ok(())
}
