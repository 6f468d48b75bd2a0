//! Kinds of environments, and names of environments: `KIND[:key=value,…]`.
//!
//! A kind is a file here that implements [`EnvironmentKind`], and its line in [`KINDS`]: names, keys, what works on this machine, how it is made ready
//! and how it ends. Nothing else names it. `spec`: an environment of any kind, as a user named it. `trial`: what works here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tollgate_model::Environment;
use tollgate_model::text::excerpt;

use crate::error::EnvironmentError;
use crate::making::Making;
use crate::pairs::{Changes, Key, SpecError, near};
use crate::prepared::Prepared;
use crate::ram::OnRam;
use crate::ready::Ready;

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

/// Says whether the caller wants to stop.
type Stop<'a> = &'a dyn Fn() -> bool;

/// An environment of one kind, as a user named it.
pub(crate) trait EnvironmentKind: fmt::Debug + Send + Sync + 'static {
    /// What is known of the kind.
    fn description() -> &'static Description
    where
        Self: Sized;

    /// Reads what stands behind `KIND:`, if there is a colon.
    ///
    /// # Errors
    /// What is wrong, as a clause.
    fn read(rest: Option<&str>) -> Result<Self, String>
    where
        Self: Sized;

    /// The environments of the kind that a survey of this machine tries.
    fn candidates() -> Vec<Candidate>
    where
        Self: Sized;

    /// What `read` reads, in the pieces between which commas stand.
    fn settings(&self) -> Vec<String>;

    /// Makes it ready. What is made for it is promised first.
    ///
    /// # Errors
    /// A sentence: what is missing, with its package, or not allowed.
    fn prepare(&self, making: &mut Making, stop: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError>;

    /// The same with a shell in the agent's place, beside one that was made ready with this runtime and directory.
    ///
    /// # Errors
    /// It has no shell, or cannot be prepared.
    fn shell(&self, runtime: Option<&str>, making: &Making) -> Result<Prepared, EnvironmentError>;

    /// The files that make it, with the runtime where there are several.
    fn files(&self, _runtime: Option<&str>) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The processor that is measured on, where its name says so.
    fn cpu(&self) -> Option<usize> {
        None
    }

    /// Why not all of its processes come from this one, where they do not.
    fn hidden(&self, _runtime: Option<&str>) -> Option<&'static str> {
        None
    }

    /// Whose filter of system calls its processes have, as far as its name decides that.
    fn filter(&self, _runtime: Option<&str>) -> Option<String> {
        None
    }

    /// Gives this process the settings of the name; None where an agent has none to take.
    fn apply(&self) -> Option<Result<(), EnvironmentError>> {
        None
    }

    /// Its name with this directory for files beside the rest; None where it takes none, or has one.
    fn in_directory(&self, _directory: &Path) -> Option<String> {
        None
    }

    /// Whether the name says that its instructions are counted.
    fn counts(&self) -> bool {
        false
    }

    /// The same with files on this file system in its memory, where it names none; None where it has no such device.
    fn on_ram(&self, _on: &OnRam) -> Option<Spec> {
        None
    }

    /// The same with this kernel; None where it has no kernel of its own, or its name has one.
    fn with_kernel(&self, _file: &Path) -> Option<Spec> {
        None
    }
}

/// What is known of a kind.
#[derive(Debug)]
pub(crate) struct Description {
    /// What its environments' names begin with.
    pub name: &'static str,
    /// What has to stand behind that, such as `HOST`.
    pub operand: Option<&'static str>,
    /// What may stand behind it else.
    pub keys: &'static [Key],
    /// What a run in it that no session made says of its environment, where that tells the kind.
    pub seen_as: Option<Environment>,
    /// How often a session starts one, at least 1.
    pub starts: usize,
    /// Whether a kernel of its own says how much memory is in use in it.
    pub has_kernel: bool,
    /// Whether it is a virtual machine: its start has phases.
    pub is_guest: bool,
}

impl Description {
    /// One on the kernel of this machine.
    pub const fn new(name: &'static str, keys: &'static [Key]) -> Self {
        Self { name, operand: None, keys, seen_as: None, starts: 1, has_kernel: false, is_guest: false }
    }

    /// How its environments are named, for messages: `ssh:HOST`.
    pub fn form(&self) -> String {
        self.operand.map_or_else(|| self.name.to_owned(), |operand| format!("{}:{operand}", self.name))
    }
}

/// A kind in the registry.
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

/// A registry of kinds.
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
            return format!("the kind of the environment is missing: there are {forms}");
        }
        let names: Vec<&str> = self.descriptions().map(|kind| kind.name).collect();
        format!("there is no environment {}{}: there are {forms}", excerpt(name), near(name, &names))
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

/// How environments of each kind are named, for messages; `joint` stands before the last: `host, …, ssh:HOST or exec:PREFIX`.
pub fn forms(joint: &str) -> String {
    ALL.forms(joint)
}

/// The kinds as they are typed, each with its pairs of key and value; the key alone where the value is the user's.
pub fn typed() -> Vec<(String, Vec<String>)> {
    ALL.typed()
}

fn key(kind: &str, key: &str) -> Option<&'static Key> {
    ALL.named(kind)?.keys.iter().find(|known| known.is_of(key))
}

/// What another value of a key changes in an environment of this kind; None where there is no such key.
pub fn changes(kind: &str, name: &str) -> Option<Changes> {
    key(kind, name).map(|key| key.changes)
}

/// Whether a word behind the name of a kind is a key without a value.
pub fn is_alone(kind: &str, word: &str) -> bool {
    key(kind, word).is_some_and(Key::is_alone)
}

/// Whether an environment, as a user named it, is a virtual machine.
pub fn is_guest(name: &str) -> bool {
    ALL.named(name.split(':').next().unwrap_or(name)).is_some_and(|kind| kind.is_guest)
}

/// The kind that a run comes nearest to which no session made; the first where none is like it.
pub fn nearest(environment: Environment) -> &'static str {
    let is_like = |kind: &&Description| kind.seen_as == Some(environment);
    ALL.descriptions().find(is_like).or_else(|| ALL.descriptions().next()).map_or("", |kind| kind.name)
}

/// What works here, in the order of the kinds. It takes a second or two, and leaves nothing.
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
