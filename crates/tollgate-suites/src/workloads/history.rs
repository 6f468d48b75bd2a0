//! A history of the tree in git: two tags, and some commits between them.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::{collections::HashMap, path::PathBuf};

use super::command::{Command, on_files};
use super::digest::Digest;
use super::fixture::{Tree, at_work};
use super::source::{self, PEOPLE, Version};
use crate::prelude::*;

/// The time of the first commit, in seconds since 1970: 25 December 2017.
pub(super) const BEGAN: u64 = 1_514_160_000;
/// Seconds between two commits.
const DAY: u64 = 86_400;

pub(super) fn repository(fixture: &Tree) -> PathBuf {
    fixture.path_of("repository")
}

/// Makes the history, unless it exists. Returns the second version's digest.
pub(super) fn make(fixture: &mut Tree, context: &mut RunContext) -> Step<Digest> {
    if let Some(second) = fixture.second {
        return Ok(second);
    }
    let (repository, stream) = (repository(fixture), fixture.path_of("history"));
    // Leftovers of a failed attempt.
    let _ = fs::remove_dir_all(&repository);
    on_files("mkdir(2)", fs::create_dir(&repository))?;
    context.say("the history of the tree");
    let mut history = History::new(on_files("open(2)", File::create(&stream))?);
    history.version(fixture, Version::First, context)?;
    let second = history.version(fixture, Version::Second, context)?;
    on_files("write(2)", history.to.flush())?;
    let git = |words: &[&str]| Command::new(&repository, [&["git"], words].concat());
    fixture.home.run(&git(&["-c", "init.defaultBranch=main", "init", "-q", "--template="]), context)?;
    // Without git's occasional maintenance and its daemons.
    for (name, value) in [
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("core.fsmonitor", "false"),
        ("core.untrackedCache", "false"),
    ] {
        fixture.home.run(&git(&["config", name, value]), context)?;
    }
    let import = Command { input: Some(stream.clone()), ..git(&["fast-import", "--quiet"]) };
    fixture.home.run(&import, context)?;
    on_files("unlink(2)", fs::remove_file(&stream))?;
    fixture.second = Some(second);
    Ok(second)
}

/// A history in the format of git-fast-import(1).
struct History {
    to: BufWriter<File>,
    /// The contents of each file in the branch.
    files: HashMap<String, Digest>,
    commits: u64,
    /// The part of the tree of the latest commit.
    part: String,
}

impl History {
    fn new(to: File) -> Self {
        Self { to: BufWriter::new(to), files: HashMap::new(), commits: 0, part: String::new() }
    }

    /// Writes the commits of a version, one for each directory, and its tag. Returns its digest.
    fn version(&mut self, fixture: &Tree, version: Version, context: &mut RunContext) -> Step<Digest> {
        let mut before = self.files.clone();
        let truth = source::make(fixture.size, version, |source::File { path, text }| {
            at_work(context, "the history of the tree")?;
            let mut digest = Digest::default();
            digest.add(path.as_bytes(), text.as_bytes());
            if before.remove(&path) == Some(digest) {
                return Ok(());
            }
            let written = self
                .commit_to(part(&path))
                .and_then(|()| write!(self.to, "M 100644 inline {path}\ndata {}\n{text}\n", text.len()));
            self.files.insert(path, digest);
            on_files("write(2)", written)
        })?;
        let mut removed: Vec<String> = before.into_keys().collect();
        removed.sort();
        for path in removed {
            let written = self.commit_to("what nobody needs").and_then(|()| writeln!(self.to, "D {path}"));
            on_files("write(2)", written)?;
            self.files.remove(&path);
        }
        on_files("write(2)", self.tag(version))?;
        Ok(truth.digest)
    }

    /// Begins a commit for this part of the tree, unless it is the current one.
    fn commit_to(&mut self, part: &str) -> std::io::Result<()> {
        if self.part == part {
            return Ok(());
        }
        self.part = part.to_owned();
        let (who, when) = (self.who(), self.when());
        self.commits += 1;
        let message = format!("{part}: the changes of day {}", self.commits);
        write!(self.to, "commit refs/heads/main\ncommitter {who} {when}\ndata {}\n{message}\n", message.len())
    }

    fn tag(&mut self, version: Version) -> std::io::Result<()> {
        // The next version begins with a new commit.
        self.part.clear();
        let (who, when, tag) = (self.who(), self.when(), version.tag());
        write!(self.to, "tag {tag}\nfrom refs/heads/main\ntagger {who} {when}\ndata 0\n\n")
    }

    fn who(&self) -> String {
        let person = PEOPLE[self.commits as usize % PEOPLE.len()];
        format!("{person} <{person}@localhost>")
    }

    fn when(&self) -> String {
        format!("{} +0000", BEGAN + self.commits * DAY)
    }
}

/// Returns the second component of a file's path, or `tree`.
fn part(path: &str) -> &str {
    let mut names = path.split('/');
    match (names.next(), names.next(), names.next()) {
        (Some(_), Some(directory), Some(_)) => directory,
        _ => "the tree",
    }
}
