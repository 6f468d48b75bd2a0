//! The source tree that workloads work on: a project in C, the same wherever and whenever it is made, in two versions.
//!
//! What is to be known of it is known before any other program has seen it: names and bytes, how many functions it
//! defines, how many of its lines have a mark, and what it prints when it is built and run.

use std::time::Duration;

use super::digest::Digest;

mod code;
mod module;
mod project;
#[cfg(test)]
mod tests;
mod words;

use module::{Identity, Module};
pub(super) use project::PROGRAM;
pub(super) use words::PEOPLE;

/// How large the tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Size {
    /// About 60 thousand lines, as many as mdadm has.
    #[default]
    Small,
    /// About 2 million lines.
    Large,
}

impl Size {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Small, Self::Large];

    /// The parameter of cases that says which.
    pub const PARAMETER: &'static str = "size";

    /// The time that is enough for several repetitions of everything on two processors.
    pub fn usual_time(self) -> Duration {
        match self {
            Self::Small => Duration::from_secs(2 * 60),
            Self::Large => Duration::from_secs(30 * 60),
        }
    }

    /// Bytes that all that is made of such a tree takes at a time, with something to spare.
    pub(super) fn bytes_at_most(self) -> u64 {
        match self {
            Self::Small => 16 << 20,
            Self::Large => 700 << 20,
        }
    }

    /// As a parameter of cases.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }

    /// The size of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.name() == name)
    }

    /// Directories, and modules in each of them. A module has about 1500 lines.
    fn modules(self) -> (usize, usize) {
        match self {
            Self::Small => (8, 5),
            Self::Large => (words::MOST_DIRECTORIES, 13),
        }
    }
}

/// A version of the tree, which is a tag of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    First,
    Second,
}

impl Version {
    /// The tag.
    pub fn tag(self) -> &'static str {
        match self {
            Self::First => "v1",
            Self::Second => "v2",
        }
    }
}

/// The word that some comments of the tree begin a line with, and that grep(1) looks for.
pub(super) const MARK: &str = "NOTE";

/// What is known of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Truth {
    /// Names and bytes.
    pub digest: Digest,
    pub bytes: u64,
    pub lines: u64,
    /// Functions that are defined.
    pub functions: u64,
    /// Lines with a [`MARK`].
    pub marks: u64,
    /// What the program prints, as a number.
    pub printed: u32,
}

/// A file of the tree.
pub(super) struct File {
    /// From the tree's root.
    pub path: String,
    pub text: String,
}

/// Makes the files of a version, one after the other in the order of their directories, and says what is known of them all.
///
/// # Errors
/// The first that `take` returns.
pub(super) fn make<E>(
    size: Size,
    version: Version,
    mut take: impl FnMut(File) -> Result<(), E>,
) -> Result<Truth, E> {
    let mut truth = Truth::default();
    let mut give = |path: String, text: String, truth: &mut Truth| {
        truth.digest.add(path.as_bytes(), text.as_bytes());
        truth.bytes += text.len() as u64;
        truth.lines += text.lines().count() as u64;
        truth.marks += text.lines().filter(|line| line.contains(MARK)).count() as u64;
        take(File { path, text })
    };
    let mut printed = project::BEGIN;
    let mut parts = Vec::new();
    for identity in identities(size, version) {
        let module = Module::new(identity, version);
        printed = module.execute(printed);
        truth.functions += module.definitions() as u64;
        give(format!("include/{}.h", module.path()), module.header(), &mut truth)?;
        give(format!("src/{}.c", module.path()), module.source(), &mut truth)?;
        parts.push(project::Part { path: module.path(), entry: module.entry() });
    }
    // main is one.
    truth.functions += 1;
    truth.printed = printed;
    for (path, text) in project::files(version, &parts) {
        give(path.to_owned(), text, &mut truth)?;
    }
    Ok(truth)
}

fn identities(size: Size, version: Version) -> impl Iterator<Item = Identity> {
    let (directories, modules) = size.modules();
    let all = (0..directories).flat_map(move |directory| {
        // The second version has new ones in a few directories.
        let new = usize::from(seed(&[directory as u64, 9]).is_multiple_of(4));
        (0..modules + new).map(move |place| Identity { directory, place })
    });
    all.filter(move |identity| identity.is_in(version, modules))
}

/// A number that depends on all of these and looks like any other (FNV-1a; Fowler, Noll and Vo, 1991).
fn seed(of: &[u64]) -> u64 {
    of.iter()
        .flat_map(|number| number.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        .rotate_left(29)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> 7
}
