//! The source tree of workloads: a generated C project in two versions, always the same.
//!
//! Its contents are known before a compiler has run: names and bytes, the number of functions and of marked lines, and
//! the built program's output, because each statement of the generated C can be both written and executed here.

use std::time::Duration;

use super::digest::Digest;

mod code;
mod module;
mod project;
#[cfg(test)]
mod tests;
mod vocabulary;

use module::{Identity, Module};
pub(super) use project::PROGRAM;
pub(super) use vocabulary::PEOPLE;

/// The size of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Size {
    /// About 60 thousand lines, as many as mdadm has.
    #[default]
    Small,
    /// About 2 million lines.
    Large,
}

impl Size {
    /// Both sizes.
    pub const ALL: [Self; 2] = [Self::Small, Self::Large];

    /// The parameter's name.
    pub const PARAMETER: &'static str = "size";

    /// The default time, for several repetitions of all workloads on two processors.
    pub fn usual_time(self) -> Duration {
        match self {
            Self::Small => Duration::from_secs(2 * 60),
            Self::Large => Duration::from_secs(30 * 60),
        }
    }

    /// An upper bound for the bytes of all files of such a tree.
    pub(super) fn bytes_at_most(self) -> u64 {
        match self {
            Self::Small => 16 << 20,
            Self::Large => 700 << 20,
        }
    }

    /// The parameter's value.
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

    /// Directories, and modules in each. A module has about 1500 lines.
    fn modules(self) -> (usize, usize) {
        match self {
            Self::Small => (8, 5),
            Self::Large => (vocabulary::MOST_DIRECTORIES, 13),
        }
    }
}

/// A version of the tree, tagged in its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    First,
    Second,
}

impl Version {
    pub fn tag(self) -> &'static str {
        match self {
            Self::First => "v1",
            Self::Second => "v2",
        }
    }
}

/// The word at the start of some comment lines, for grep(1).
pub(super) const MARK: &str = "NOTE";

/// The known contents of a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Truth {
    /// The digest of names and bytes.
    pub digest: Digest,
    pub bytes: u64,
    pub lines: u64,
    pub functions: u64,
    /// Number of lines with a [`MARK`].
    pub marks: u64,
    /// The built program's output, as a number.
    pub printed: u32,
}

pub(super) struct File {
    pub path: String,
    pub text: String,
}

/// Makes the files of a version in the order of their directories, and returns their known contents.
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
        // The second version has new modules in a few directories.
        let new = usize::from(seed(&[directory as u64, 9]).is_multiple_of(4));
        (0..modules + new).map(move |number| Identity { directory, number })
    });
    all.filter(move |identity| identity.is_in(version, modules))
}

/// A hash of all these numbers (FNV-1a; Fowler, Noll and Vo, 1991).
fn seed(of: &[u64]) -> u64 {
    of.iter()
        .flat_map(|number| number.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        .rotate_left(29)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> 7
}
