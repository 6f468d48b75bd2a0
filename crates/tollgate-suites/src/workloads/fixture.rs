//! The ground of workloads: the tree on disk, what is known of it, and what is made beside it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tollgate_model::Fact;
use tollgate_os::workdir::Workdir;

use tollgate_engine::{BenchError, Refusal, RunContext, cpu, interrupt};

use super::command::{Command, Home, Owner, Step, Stop, create, failed, first_line, on_files};
use super::digest::Digest;
use super::source::{self, Size, Truth, Version};
use super::work::Program;

/// A tree of one size, in a directory of its own that goes when this is dropped. While it is there, this thread accesses files with the
/// identity of the directory's owner, see [`Owner`].
pub(super) struct Tree {
    pub size: Size,
    /// What is known of the first version, which lies in [`Tree::tree`].
    pub truth: Truth,
    /// What the second holds, once there is a history of both.
    pub second: Option<Digest>,
    pub home: Home,
    /// Processors that commands may use.
    pub processors: usize,
    /// What was asked of programs: their versions.
    pub facts: Vec<(String, Fact)>,
    root: PathBuf,
}

impl Tree {
    /// Makes the first version of the tree in a directory that is there.
    ///
    /// # Errors
    /// What writing says; that the time was over.
    pub fn make(size: Size, under: &Workdir, context: &mut RunContext) -> Step<Self> {
        // Before anything is touched there.
        let owner = Owner::enter(under)?;
        let root = under.join(format!("workloads-{}", size.name()));
        // What a command that was ended left of an earlier one.
        let _ = fs::remove_dir_all(&root);
        on_files("mkdir(2)", fs::create_dir(&root))?;
        // From here on it goes when this is dropped.
        let mut ground = Self {
            size,
            truth: Truth::default(),
            second: None,
            home: Home::new(&root, owner)?,
            processors: cpu::allowed().len().max(1),
            facts: Vec::new(),
            root,
        };
        context.say("the source tree");
        let tree = ground.tree();
        ground.truth = source::make(size, Version::First, |file| {
            go_on(context)?;
            write(&tree.join(file.path), file.text.as_bytes())
        })?;
        Ok(ground)
    }

    /// A place for something beside the tree.
    pub fn contended(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The tree.
    pub fn tree(&self) -> PathBuf {
        self.contended("tree")
    }

    /// That a tree is a version of ours.
    ///
    /// # Errors
    /// `who`, such as `git checkout v2`, ended well and left something else.
    pub fn expect_tree(&self, who: &str, root: &Path, expected: Digest) -> Step<String> {
        let found = on_files("to read what was written", Digest::of_tree(root))?;
        match (found == expected, found.files == expected.files) {
            (true, _) => Ok(format!("{} files as they should be", found.files)),
            (false, true) => {
                failed(format!("{who} ended well, but the {} files are not what they should be", found.files))
            }
            (false, false) => failed(format!(
                "{who} ended well, but there are {} files and should be {}",
                found.files, expected.files
            )),
        }
    }

    /// Asks a program for its version, once, for a fact.
    ///
    /// # Errors
    /// When the time is over, or the user stops it: what cannot say a version may still do its work.
    pub fn ask_version(&mut self, program: &str, context: &mut RunContext) -> Step<String> {
        let name = format!("workloads.{program}");
        let source = format!("{program} --version");
        if let Some((_, fact)) = self.facts.iter().find(|(known, _)| *known == name) {
            return Ok(fact.value().map(ToString::to_string).unwrap_or_default());
        }
        let said = self.contended("version");
        let ask = Command { output: Some(said.clone()), ..Command::new(&self.root, [program, "--version"]) };
        let line = match self.home.run(&ask, context) {
            Ok(()) => first_line(&said),
            Err(Stop::Case(Refusal::Skip(_) | Refusal::Fail(_))) => String::new(),
            Err(stop) => return Err(stop),
        };
        let fact = match line.is_empty() {
            false => Fact::known(line.clone(), source),
            true => Fact::unreadable(format!("{source} says nothing")),
        };
        self.facts.push((name, fact));
        Ok(line)
    }

    /// That a program is here; notes its version.
    ///
    /// # Errors
    /// [`Refusal::Skip`] with what to install.
    pub fn needs(&mut self, program: &Program, context: &mut RunContext) -> Step<()> {
        program.must_be_here()?;
        self.ask_version(program.name, context).map(|_| ())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // Whoever made the directory above takes away what is left.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// That neither the user nor the clock says stop.
///
/// # Errors
/// Which of them does.
pub(super) fn go_on(context: &RunContext) -> Step<()> {
    match interrupt::requested() {
        Some(signal) => Err(Stop::Run(BenchError::Interrupted(signal))),
        None if context.left().is_zero() => Err(Stop::Time),
        None => Ok(()),
    }
}

/// A new file, with the directories above it.
///
/// # Errors
/// What the place does not allow.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Step<()> {
    if let Some(directory) = path.parent() {
        on_files("mkdir(2)", fs::create_dir_all(directory))?;
    }
    on_files("write(2)", create(path).and_then(|mut file| file.write_all(bytes)))
}
