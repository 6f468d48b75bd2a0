//! Revisions of a repository as the sides of a comparison: `versus --rev main 'COMMAND {dir}/PROGRAM'`.
//!
//! - `git`: revisions and the working tree as trees of files, by git(1), which writes nothing to the repository.
//! - `builds`: each tree is built at the same path, so that equal sources give equal files, and kept for the next comparison.
//! - `layouts`: their programs are linked several times, with their functions in another order.
//! - `equal`: files that are equal to the byte need no measurement.

mod builds;
pub mod equal;
pub mod git;
mod layouts;

pub use layouts::MOST as MOST_LAYOUTS;

use std::collections::BTreeSet;
use std::path::PathBuf;

use tollgate_engine::interrupt;
use tollgate_model::text::excerpt;
use tollgate_view::versus::revisions::SameFile;

use self::builds::{Builder, Layouts, Recipe};
use self::equal::Executed;
use self::git::{Repository, Tree};
use crate::args::ShowFormat;
use crate::args::versus::VersusArgs;
use crate::failure::Failure;
use crate::{out, say};

/// In a command, the directory that a revision was built in.
pub const DIRECTORY: &str = "dir";
/// The parameter that names a command's revision.
pub const REVISION: &str = "rev";
const WORKING_TREE: &str = "working tree";

/// A side of the comparison.
pub struct Side {
    /// The revision as it was given.
    pub name: String,
    /// Its build.
    pub directory: PathBuf,
    /// For each layout its directory, or with --bench its program. Empty if there is only one layout.
    pub layouts: Vec<PathBuf>,
}

impl Side {
    /// A side that is not built yet.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), directory: "{dir}".into(), layouts: Vec::new() }
    }
}

/// The sides of a comparison, the base first. No other comparison removes their builds as long as this exists.
pub struct Revisions {
    pub sides: Vec<Side>,
    /// With --bench, the program of each.
    pub benches: Vec<PathBuf>,
    repository: Repository,
    trees: Vec<Tree>,
    recipe: Option<Recipe>,
    builder: Builder,
}

/// Names of the sides as far as they are known without a build; `None` without `--rev`.
///
/// # Errors
/// Options that do not go with revisions, or a command without `{dir}`.
pub fn asked(args: &VersusArgs) -> Result<Option<Vec<Side>>, Failure> {
    let given = &args.revisions.rev;
    if given.is_empty() {
        return Ok(None);
    }
    if !args.bench.bench {
        let [command] = args.commands.as_slice() else {
            let number = args.commands.len();
            return Err(Failure::input(format!(
                "--rev compares one command in each revision; {number} are given"
            )));
        };
        if !command.contains("{dir}") {
            return Err(Failure::input(format!(
                "the command {} is the same for each revision; write {{dir}} for the directory that a revision is built in",
                excerpt(command)
            )));
        }
    }
    let working_tree = (given.len() == 1).then(|| WORKING_TREE.to_owned());
    let names = given.iter().cloned().chain(working_tree);
    Ok(Some(names.map(|name| Side::named(&name)).collect()))
}

/// Whether the command executes equal files in two commits.
///
/// # Errors
/// Those of [`built`].
pub fn execute_equal_files(args: &VersusArgs, commits: [&str; 2]) -> Result<bool, Failure> {
    let revisions = built(args, commits.map(Side::named).into())?;
    Ok(!revisions.equal_to_base(args).0.is_empty())
}

/// Builds each side, or finds its build.
///
/// # Errors
/// No repository, no such revision, two sides of the same files, a build that fails, a signal.
pub fn built(args: &VersusArgs, asked: Vec<Side>) -> Result<Revisions, Failure> {
    let repository = Repository::open()?;
    let mut trees: Vec<(Side, Tree)> = Vec::new();
    for side in asked {
        let is_working_tree = args.revisions.rev.len() == 1 && trees.len() == 1;
        let tree = if is_working_tree { repository.working_tree()? } else { repository.tree(&side.name)? };
        if let Some((known, _)) = trees.iter().find(|(_, known)| *known == tree) {
            return Err(Failure::input(same_source(&known.name, &side.name, is_working_tree)));
        }
        trees.push((side, tree));
    }
    let (sides, trees) = trees.into_iter().unzip();
    let builder = Builder::open()?;
    let mut revisions = Revisions { sides, benches: Vec::new(), repository, trees, recipe: None, builder };
    for at in 0..revisions.sides.len() {
        let directory = revisions.build(args, at, 1)?;
        if args.bench.bench {
            revisions.benches.push(revisions.named(at, Recipe::bench_of(&directory))?);
        }
        revisions.sides[at].directory = directory;
    }
    interrupt::requested().map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))?;
    revisions.builder.forget_old();
    Ok(revisions)
}

fn same_source(one: &str, other: &str, is_working_tree: bool) -> String {
    let [one, other] = [excerpt(one), excerpt(other)];
    if is_working_tree {
        format!(
            "the working tree has the files of {one}, and no change to compare; name another revision, such as --rev {one}~1"
        )
    } else {
        format!("{one} and {other} have the same files, so each would be compared with itself")
    }
}

impl Revisions {
    fn named<T>(&self, at: usize, found: Result<T, String>) -> Result<T, Failure> {
        found.map_err(|why| Failure::input(format!("{}: {why}", excerpt(&self.sides[at].name))))
    }

    fn build(&mut self, args: &VersusArgs, at: usize, seed: usize) -> Result<PathBuf, Failure> {
        let (name, number) = (&self.sides[at].name, self.sides.len());
        let progress = |what: &str| {
            if !args.result.quiet {
                say::say(&format!("{name} ({} of {number}): {what}", at + 1));
            }
        };
        let built =
            self.builder.build(&self.repository, &self.trees[at], seed, &mut self.recipe, args, &progress);
        built.map_err(|failure| match failure {
            Failure::Input(sentence) => Failure::input(format!("{}: {sentence}", excerpt(name))),
            Failure::Failed(sentence) => Failure::Failed(format!("{}: {sentence}", excerpt(name))),
            other => other,
        })
    }

    /// Gives each side this many layouts, or as many as there are. `None` stands for the number to begin with. Returns how many each
    /// has: 1 if programs cannot be linked several times, and a note says why.
    ///
    /// # Errors
    /// A build that fails; a signal; programs that cannot be linked several times although --layouts asks for it.
    pub fn lay_out(&mut self, args: &VersusArgs, number: Option<usize>) -> Result<usize, Failure> {
        let number = number.unwrap_or_else(|| builds::asked(args));
        let found = match self.recipe.as_ref().map(|recipe| &recipe.layouts) {
            Some(Layouts::Linked(_)) => (0..self.sides.len()).map(|at| self.linked(args, at)).collect(),
            Some(Layouts::Seeded) => self.seeded(args, number).map(Ok)?,
            Some(Layouts::One) | None => return Ok(1),
        };
        let mut found: Vec<Vec<PathBuf>> = match found {
            Ok(found) => found,
            Err(why) if args.revisions.layouts.is_some() => {
                return Err(Failure::input(format!("--layouts {number}: {why}")));
            }
            Err(why) => {
                say::say(&format!("one layout of each: {why}"));
                return Ok(1);
            }
        };
        let least = found.iter().map(Vec::len).fold(number, usize::min);
        for (side, layouts) in self.sides.iter_mut().zip(&mut found) {
            layouts.truncate(least);
            side.layouts = std::mem::take(layouts);
        }
        Ok(least)
    }

    fn linked(&self, args: &VersusArgs, at: usize) -> Result<Vec<PathBuf>, String> {
        let (directory, source) = (&self.sides[at].directory, self.builder.source());
        match self.benches.get(at) {
            Some(bench) => layouts::of_bench(directory, &source, bench),
            None => {
                let named = equal::named(args.commands.first().map_or("", String::as_str));
                layouts::of_build(directory, &source, named.as_ref())
            }
        }
    }

    /// Layout n is the build with the seed n.
    fn seeded(&mut self, args: &VersusArgs, number: usize) -> Result<Vec<Vec<PathBuf>>, Failure> {
        let mut found = Vec::new();
        for at in 0..self.sides.len() {
            let mut layouts = Vec::new();
            for seed in 1..=number {
                let directory = self.build(args, at, seed)?;
                let bench = args.bench.bench;
                layouts.push(if bench { self.named(at, Recipe::bench_of(&directory))? } else { directory });
            }
            found.push(layouts);
        }
        Ok(found)
    }

    /// The other sides that execute the files of the first, equal to the byte, and these files.
    fn equal_to_base(&self, args: &VersusArgs) -> (Vec<&Side>, BTreeSet<PathBuf>) {
        let line = args.commands.first().map_or("", String::as_str);
        let of = |at: usize| match self.benches.get(at) {
            Some(program) => Executed::of_program(&self.sides[at].directory, program),
            None => Executed::of_command(&self.sides[at].directory, line),
        };
        let Some(base) = of(0) else { return Default::default() };
        let is_equal = |at: &usize| of(*at).is_some_and(|other| base.is_equal(&other));
        let equal = (1..self.sides.len()).filter(is_equal).map(|at| &self.sides[at]).collect();
        (equal, base.named)
    }

    /// Says which sides execute files that are equal to the byte. Returns whether all do, so that nothing is left to measure.
    ///
    /// # Errors
    /// Standard output that cannot be written.
    pub fn are_equal(&self, args: &VersusArgs) -> Result<bool, Failure> {
        let (equal, named) = self.equal_to_base(args);
        if !args.revisions.bisect.is_empty() {
            return Ok(equal.len() == 1);
        }
        let files = named.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let names: Vec<&str> = std::iter::once(&self.sides[0])
            .chain(equal.iter().copied())
            .map(|side| side.name.as_str())
            .collect();
        if equal.is_empty() {
            return Ok(false);
        }
        let names = tollgate_model::text::listed(&names.iter().map(|name| excerpt(name)).collect::<Vec<_>>());
        let sentence = format!("{names}: same file ({files}), equal to the byte");
        if equal.len() + 1 < self.sides.len() {
            say::say(&sentence);
            return Ok(false);
        }
        match args.result.format {
            ShowFormat::Table | ShowFormat::Md => out::print(&format!("{sentence}; nothing was measured\n"))?,
            ShowFormat::Json => out::print_json(&SameFile {
                verdict: "same file",
                revisions: self.sides.iter().map(|side| side.name.as_str()).collect(),
                files: named,
            })?,
            ShowFormat::Csv | ShowFormat::Svg => say::say(&format!("{sentence}; nothing was measured")),
        }
        Ok(true)
    }
}
