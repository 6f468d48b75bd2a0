//! A history of the tree in git: two tags, and some commits between them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use tollgate_engine::RunContext;

use super::command::{Command, Step, create, on_files};
use super::digest::Digest;
use super::fixture::{Tree, go_on};
use super::source::{self, PEOPLE, Version};

/// When the first commit was made, in seconds since 1970: 25 December 2017.
pub(super) const BEGAN: u64 = 1_514_160_000;
/// Between two commits.
const DAY: u64 = 86_400;

/// Where it is, with its tree.
pub(super) fn repository(ground: &Tree) -> PathBuf {
    ground.contended("repository")
}

/// Makes it, where it is not there yet; what the second version holds.
///
/// # Errors
/// What git says.
pub(super) fn make(ground: &mut Tree, context: &mut RunContext) -> Step<Digest> {
    if let Some(second) = ground.second {
        return Ok(second);
    }
    let (repository, stream) = (repository(ground), ground.contended("history"));
    // What an attempt left that failed.
    let _ = fs::remove_dir_all(&repository);
    on_files("mkdir(2)", fs::create_dir(&repository))?;
    context.say("the history of the tree");
    let mut history = History::new(on_files("open(2)", create(&stream))?);
    history.version(ground, Version::First, context)?;
    let second = history.version(ground, Version::Second, context)?;
    on_files("write(2)", history.to.flush())?;
    let git = |words: &[&str]| Command::new(&repository, [&["git"], words].concat());
    ground.home.run(&git(&["-c", "init.defaultBranch=main", "init", "-q", "--template="]), context)?;
    // What git would do besides, now and then, or through a process that stays.
    for (name, value) in [
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("core.fsmonitor", "false"),
        ("core.untrackedCache", "false"),
    ] {
        ground.home.run(&git(&["config", name, value]), context)?;
    }
    let import = Command { input: Some(stream.clone()), ..git(&["fast-import", "--quiet"]) };
    ground.home.run(&import, context)?;
    on_files("unlink(2)", fs::remove_file(&stream))?;
    ground.second = Some(second);
    Ok(second)
}

/// A history as git-fast-import(1) reads it.
struct History {
    to: BufWriter<File>,
    /// What each file is in the branch.
    files: HashMap<String, Digest>,
    /// Commits so far.
    commits: u64,
    /// The part of the tree that the latest commit is about.
    part: String,
}

impl History {
    fn new(to: File) -> Self {
        Self { to: BufWriter::new(to), files: HashMap::new(), commits: 0, part: String::new() }
    }

    /// Commits, one for each directory, after which the tree is a version, and its tag; what it holds.
    fn version(&mut self, ground: &Tree, version: Version, context: &RunContext) -> Step<Digest> {
        let mut before = self.files.clone();
        let truth = source::make(ground.size, version, |source::File { path, text }| {
            go_on(context)?;
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
        tollgate_model::sort::ascending(&mut removed);
        for path in removed {
            let written = self.commit_to("what nobody needs").and_then(|()| writeln!(self.to, "D {path}"));
            on_files("write(2)", written)?;
            self.files.remove(&path);
        }
        on_files("write(2)", self.tag(version))?;
        Ok(truth.digest)
    }

    /// What follows is part of a commit about this part of the tree.
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
        // The next version begins with a commit.
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

/// The directory of a file below the first, or the tree.
fn part(path: &str) -> &str {
    let mut names = path.split('/');
    match (names.next(), names.next(), names.next()) {
        (Some(_), Some(directory), Some(_)) => directory,
        _ => "the tree",
    }
}
