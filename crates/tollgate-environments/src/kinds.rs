//! Kinds of environments, and names of environments: `KIND[:key=value,…]`.
//!
//! A kind is a file here that implements [`EnvironmentKind`], and a line in [`KINDS`]. No other code names it. `spec` is an
//! environment of any kind, as a user named it; `trial` finds what works here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tollgate_engine::Architecture;
use tollgate_model::Environment;
use tollgate_model::text::excerpt;

use crate::error::EnvironmentError;
use crate::making::Making;
use crate::pairs::{Changes, Key, SpecError, near};
use crate::prepared::Prepared;
use crate::ram::OnRam;
use crate::ready::Ready;
use crate::vm::Kernels;

mod container;
mod exec;
pub(crate) mod gvisor;
mod host;
mod spec;
mod ssh;
mod trial;
mod vm;

pub use spec::Spec;
pub use trial::Possibility;

use trial::Candidate;

/// All kinds, in the order in which they are listed. The first is this machine.
const KINDS: &[Entry] = &[
    Entry::for_kind::<host::Host>(),
    Entry::for_kind::<crate::container::Container>(),
    Entry::for_kind::<gvisor::Gvisor>(),
    Entry::for_kind::<crate::vm::Vm>(),
    Entry::for_kind::<ssh::Ssh>(),
    Entry::for_kind::<exec::Exec>(),
];

const ALL: Kinds<'static> = Kinds(KINDS);

type Stop<'a> = &'a dyn Fn() -> bool;

/// An environment of one kind, as a user named it. [`Spec`] and [`crate::Environment`] document the methods that they have too.
pub(crate) trait EnvironmentKind: fmt::Debug + Send + Sync + 'static {
    fn description() -> &'static Description
    where
        Self: Sized;

    /// Parses the text after `KIND:`, if there is a colon. An error is a clause that says what is wrong.
    fn read(rest: Option<&str>) -> Result<Self, String>
    where
        Self: Sized;

    /// Environments of this kind that a survey of this machine tries.
    fn candidates() -> Vec<Candidate>
    where
        Self: Sized;

    /// The text that `read` parses, split at its commas.
    fn settings(&self) -> Vec<String>;

    /// Prepares it. Everything that it makes is promised to the cleanup process first. An error says what is missing, with
    /// its package, or what is not allowed.
    fn prepare(&self, making: &mut Making, stop: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError>;

    /// Like `prepare`, with a shell in place of the agent. Uses the runtime and directory of an environment that was prepared.
    fn shell(&self, runtime: Option<&str>, making: &Making) -> Result<Prepared, EnvironmentError>;

    /// Files that make it, with the runtime if several could.
    fn files(&self, _runtime: Option<&str>) -> Vec<PathBuf> {
        Vec::new()
    }

    fn cpu(&self) -> Option<usize> {
        None
    }

    /// Why some of its processes are not descendants of this one, if so.
    fn hidden(&self, _runtime: Option<&str>) -> Option<&'static str> {
        None
    }

    fn filter(&self, _runtime: Option<&str>) -> Option<String> {
        None
    }

    fn apply(&self) -> Option<Result<(), EnvironmentError>> {
        None
    }

    fn in_directory(&self, _directory: &Path) -> Option<String> {
        None
    }

    fn counts(&self) -> bool {
        false
    }

    fn architecture(&self) -> Architecture {
        Architecture::default()
    }

    fn on_ram(&self, _on: &OnRam) -> Option<Spec> {
        None
    }

    fn with_kernels(&self, _directory: &Path) -> Option<Result<Kernels<Spec>, String>> {
        None
    }
}

/// Properties of a kind.
#[derive(Debug)]
pub(crate) struct Description {
    /// First word of its environments' names.
    pub name: &'static str,
    /// Required text after it, such as `HOST`.
    pub operand: Option<&'static str>,
    /// Optional keys after it.
    pub keys: &'static [Key],
    /// The environment that an ordinary run detects inside one of this kind, if that identifies the kind.
    pub seen_as: Option<Environment>,
    pub starts: usize,
    /// Whether it has its own kernel, which reports the memory in use in it.
    pub has_kernel: bool,
    /// Whether it is a virtual machine, whose start has phases.
    pub is_guest: bool,
}

impl Description {
    /// A kind that runs on this machine's kernel.
    pub const fn new(name: &'static str, keys: &'static [Key]) -> Self {
        Self { name, operand: None, keys, seen_as: None, starts: 1, has_kernel: false, is_guest: false }
    }

    /// How its environments are named, for messages: `ssh:HOST`.
    pub fn form(&self) -> String {
        self.operand.map_or_else(|| self.name.to_owned(), |operand| format!("{}:{operand}", self.name))
    }
}

#[derive(Clone, Copy)]
struct Entry {
    description: fn() -> &'static Description,
    read: fn(Option<&str>) -> Result<Spec, String>,
    candidates: fn() -> Vec<Candidate>,
}

impl Entry {
    const fn for_kind<K: EnvironmentKind>() -> Self {
        fn read<K: EnvironmentKind>(rest: Option<&str>) -> Result<Spec, String> {
            K::read(rest).map(Spec::new)
        }
        Self { description: K::description, read: read::<K>, candidates: K::candidates }
    }
}

struct Kinds<'a>(&'a [Entry]);

impl Kinds<'_> {
    fn descriptions(&self) -> impl Iterator<Item = &'static Description> {
        self.0.iter().map(|entry| (entry.description)())
    }

    fn named(&self, name: &str) -> Option<&'static Description> {
        self.descriptions().find(|kind| kind.name == name)
    }

    fn read(&self, given: &str) -> Result<Spec, SpecError> {
        let wrong = |why: String| SpecError::new(given, &why);
        if given.chars().any(char::is_control) {
            return Err(wrong("a name of an environment has no control characters".to_owned()));
        }
        let (name, rest) = given.split_once(':').map_or((given, None), |(name, rest)| (name, Some(rest)));
        let read = match self.0.iter().find(|entry| (entry.description)().name == name) {
            Some(entry) => (entry.read)(rest),
            None => Err(self.no_kind(name)),
        };
        read.map_err(wrong)
    }

    fn no_kind(&self, name: &str) -> String {
        let forms = self.forms("and");
        if name.is_empty() {
            return format!("the kind of environment is missing; the kinds are {forms}");
        }
        let names: Vec<&str> = self.descriptions().map(|kind| kind.name).collect();
        format!("there is no environment {}{}; the kinds are {forms}", excerpt(name), near(name, &names))
    }

    fn forms(&self, joint: &str) -> String {
        let forms: Vec<String> = self.descriptions().map(Description::form).collect();
        match forms.as_slice() {
            [before @ .., last] if !before.is_empty() => format!("{} {joint} {last}", before.join(", ")),
            forms => forms.concat(),
        }
    }

    fn typed(&self) -> Vec<(String, Vec<String>)> {
        let of = |kind: &'static Description| {
            let joint = if kind.operand.is_some() { ":" } else { "" };
            (format!("{}{joint}", kind.name), kind.keys.iter().flat_map(Key::typed).collect())
        };
        self.descriptions().map(of).collect()
    }

    fn survey(&self) -> Vec<Possibility> {
        trial::all(self.0.iter().flat_map(|entry| (entry.candidates)()).collect())
    }
}

/// Lists the forms of names of all kinds for messages, with `joint` before the last: `host, …, ssh:HOST or exec:PREFIX`.
pub fn forms(joint: &str) -> String {
    ALL.forms(joint)
}

/// Returns each kind as it is typed, with its pairs of key and value, or the key alone if the user chooses the value.
pub fn typed() -> Vec<(String, Vec<String>)> {
    ALL.typed()
}

fn key(kind: &str, key: &str) -> Option<&'static Key> {
    ALL.named(kind)?.keys.iter().find(|known| known.is_of(key))
}

/// Returns what another value of a key changes in an environment of this kind; `None` if it has no such key.
pub fn changes(kind: &str, name: &str) -> Option<Changes> {
    key(kind, name).map(|key| key.changes)
}

/// Returns whether a word after the name of a kind is a key without a value.
pub fn is_alone(kind: &str, word: &str) -> bool {
    key(kind, word).is_some_and(Key::is_alone)
}

/// Returns whether an environment, as a user named it, is a virtual machine.
pub fn is_guest(name: &str) -> bool {
    ALL.named(name.split(':').next().unwrap_or(name)).is_some_and(|kind| kind.is_guest)
}

/// Returns the kind that is closest to a run outside any session; the first kind if none is like it.
pub fn nearest(environment: Environment) -> &'static str {
    let is_like = |kind: &&Description| kind.seen_as == Some(environment);
    ALL.descriptions().find(is_like).or_else(|| ALL.descriptions().next()).map_or("", |kind| kind.name)
}

/// Finds what works here, in the order of the kinds. It takes a second or two, and leaves nothing on the machine.
pub fn survey() -> Vec<Possibility> {
    ALL.survey()
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(given: &str) -> Result<Self, SpecError> {
        ALL.read(given)
    }
}

/// This machine, without a setting.
impl Default for Spec {
    fn default() -> Self {
        Self::new(host::Host::default())
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod through;
