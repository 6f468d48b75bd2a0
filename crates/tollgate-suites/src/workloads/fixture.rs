//! The fixture of workloads: the tree on disk, its known contents, and other files next to it.

use std::path::{Path, PathBuf};
use std::{fs, fs::File, io::Write};

use tollgate_model::Fact;
use tollgate_os::workdir::Workdir;

use super::command::{Command, Home, first_line, is_here, left, on_files};
use super::digest::Digest;
use super::source::{self, Size, Truth, Version};
use crate::{files::data_dir::opened, prelude::*};

/// A program that workloads need: its name, its project, and its Debian package.
pub(super) struct Program {
    pub name: &'static str,
    pub package: &'static str,
    pub debian: &'static str,
}

/// A tree of one size, in a directory that is removed on drop.
pub(super) struct Tree {
    pub size: Size,
    /// The known contents of the first version, in [`Tree::tree`].
    pub truth: Truth,
    /// The digest of the second version, once the history exists.
    pub second: Option<Digest>,
    pub home: Home,
    pub processors: usize,
    pub facts: Vec<(String, Fact)>,
    root: PathBuf,
}

impl Tree {
    pub fn make(size: Size, under: &Workdir, context: &mut RunContext) -> Step<Self> {
        opened(under)?;
        let root = under.join(format!("workloads-{}", size.name()));
        // Leftovers of an earlier, killed command.
        let _ = fs::remove_dir_all(&root);
        on_files("mkdir(2)", fs::create_dir(&root))?;
        // From here on the tree is removed on drop.
        let mut fixture = Self {
            size,
            truth: Truth::default(),
            second: None,
            home: Home::new(&root, under)?,
            processors: cpu::allowed().len().max(1),
            facts: Vec::new(),
            root,
        };
        let tree = fixture.tree();
        fixture.truth = source::make(size, Version::First, |file| {
            at_work(context, "the source tree")?;
            write(&tree.join(file.path), file.text.as_bytes())
        })?;
        Ok(fixture)
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn tree(&self) -> PathBuf {
        self.path_of("tree")
    }

    /// Checks that a tree is the expected version.
    ///
    /// # Errors
    /// Fails if `who`, such as `git checkout v2`, exited with status 0 and left other contents.
    pub fn expect_tree(&self, who: &str, root: &Path, expected: Digest) -> Step<String> {
        let found = on_files("to read what was written", Digest::of_tree(root))?;
        let (files, wanted) = (found.files, expected.files);
        let wrong = if files == wanted {
            format!("the contents of the {files} files differ")
        } else {
            format!("there are {files} files instead of {wanted}")
        };
        left(who, found == expected, format!("{files} files as expected"), &wrong)
    }

    /// Records a program's version as a fact, once.
    ///
    /// # Errors
    /// Fails when the time is over, or if the user stops the run. A program without a version is not an error.
    pub fn ask_version(&mut self, program: &str, context: &mut RunContext) -> Step<String> {
        let name = format!("workloads.{program}");
        let source = format!("{program} --version");
        if let Some((_, fact)) = self.facts.iter().find(|(known, _)| *known == name) {
            return Ok(fact.value().map(ToString::to_string).unwrap_or_default());
        }
        let said = self.path_of("version");
        let ask = Command { output: Some(said.clone()), ..Command::new(&self.root, [program, "--version"]) };
        let line = match self.home.run(&ask, context) {
            Ok(()) => first_line(&said),
            Err(Stop::Case(Refusal::Skip(_) | Refusal::Fail(_))) => String::new(),
            Err(stop) => return Err(stop),
        };
        let fact = if line.is_empty() {
            Fact::unreadable(format!("{source} prints nothing"))
        } else {
            Fact::known(line.clone(), source)
        };
        self.facts.push((name, fact));
        Ok(line)
    }

    pub fn needs(&mut self, program: &Program, context: &mut RunContext) -> Step<()> {
        let Program { name, package, debian } = program;
        if !is_here(name) {
            return Err(skip!("{name} is missing: install {package} (in Debian the package {debian})").into());
        }
        self.ask_version(program.name, context).map(|_| ())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // The parent directory's maker removes what is left.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Checks for the user's request to stop and for the deadline.
pub(super) fn go_on(context: &RunContext) -> Step<()> {
    interrupt::check(|signal| Stop::Run(BenchError::Interrupted(signal)))?;
    if context.left().is_zero() { Err(Stop::Time) } else { Ok(()) }
}

/// Reports the current part of a long step, then checks as [`go_on`].
pub(super) fn at_work(context: &mut RunContext, what: &str) -> Step<()> {
    context.say(what);
    go_on(context)
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> Step<()> {
    if let Some(directory) = path.parent() {
        on_files("mkdir(2)", fs::create_dir_all(directory))?;
    }
    on_files("write(2)", File::create(path).and_then(|mut file| file.write_all(bytes)))
}
