//! Builds of benches, and their executions.
//!
//! A longer path of a program moves its stack, which made a bench of divan 16 % slower. So all builds are executed by paths of
//! equal length, with equal arguments and an equal environment, and write into directories whose paths are of equal length.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::CWD;
use tollgate_model::text::{commands_a_reader, excerpt, plainly};
use tollgate_model::traced::Ended;
use tollgate_os::paths;
use tollgate_os::private::{PrivateDirectory, TrustedDirectory};

use super::copies::Copies;
use super::harness::{Harness, Size};
use crate::cases::run::BenchError;
use crate::sides::versus::rounds::how_ended;
use crate::sides::versus::{End, Execution, How, NotCompared, Order, Output};
use crate::sides::versus::{Executor, Halt};

const MOST_OUTPUT: u64 = 16 << 20;
const MOST_BENCHES: usize = 1 << 16;
/// Executions of a bench for a figure, if the harness hurried.
const MOST_ATTEMPTS: u32 = 3;
/// Bytes of the longest name of a bench. In documents it follows that of its harness.
const LONGEST_NAME: usize = 200;

/// A build.
#[derive(Debug, Clone)]
pub struct Build {
    /// Its name in messages.
    pub name: String,
    /// The path of the program.
    pub program: PathBuf,
    /// If it was linked several times with its functions in another order: the path of each program. Execution n of a bench uses
    /// program n modulo their number. All builds have the same number of programs.
    pub layouts: Vec<PathBuf>,
}

/// Builds that can be executed.
#[derive(Debug)]
pub struct Builds {
    harness: Harness,
    builds: Vec<Build>,
    links: Vec<String>,
    /// Executed for a figure instead of the link: build by build, all layouts of each.
    copies: Vec<Option<RefCell<Copies>>>,
    order: Order,
    /// The place of an execution's results.
    place: TrustedDirectory,
    _directory: PrivateDirectory,
}

pub(super) struct Done {
    /// The figure, or why there is none: the predicate of a sentence whose subject is the bench.
    pub figure: Result<f64, String>,
    pub took: Duration,
}

impl Builds {
    /// Makes the links.
    ///
    /// # Errors
    /// A sentence: there is no directory for them, or a path is not text.
    pub fn new(harness: Harness, builds: Vec<Build>, order: Order) -> Result<Self, String> {
        let cannot = |why: String| format!("a link to a build cannot be made: {why}");
        let directory = PrivateDirectory::temporary().map_err(|why| cannot(plainly(&why)))?;
        let place = TrustedDirectory::open(directory.path()).map_err(|why| cannot(why.to_string()))?;
        let mut links = Vec::new();
        for (number, build) in builds.iter().enumerate() {
            let link = directory.path().join(format!("build-{number:03}"));
            rustix::fs::symlinkat(&build.program, CWD, &link).map_err(|why| cannot(plainly(&why.into())))?;
            let text = link.to_str().ok_or_else(|| cannot(format!("{} is not UTF-8", link.display())))?;
            links.push(text.to_owned());
        }
        let programs = builds.iter().flat_map(|build| match build.layouts.as_slice() {
            [] => std::slice::from_ref(&build.program),
            layouts => layouts,
        });
        let copies = |(number, program): (usize, &PathBuf)| {
            Copies::new(program, directory.path(), number).map(RefCell::new)
        };
        let copies: Vec<_> = programs.enumerate().map(copies).collect();
        if copies.len() > builds.len() && copies.iter().any(Option::is_none) {
            return Err("a program of several layouts must be an ELF file of at most 16 MiB that looks for no libraries next to itself; use --layouts 1".to_owned());
        }
        Ok(Self { harness, builds, links, copies, order, place, _directory: directory })
    }

    /// Returns their harness.
    pub fn harness(&self) -> &Harness {
        &self.harness
    }

    /// Returns the builds, the base first.
    pub fn all(&self) -> &[Build] {
        &self.builds
    }

    /// Returns how many programs each build has.
    pub(super) fn layouts(&self) -> usize {
        (self.copies.len() / self.builds.len().max(1)).max(1)
    }

    /// Lists the benches of a build, in its order.
    ///
    /// # Errors
    /// If the list ended badly, or has no bench; see [`Halt`].
    pub fn list(
        &self,
        number: usize,
        within: Option<Duration>,
        executor: &mut dyn Executor,
        tick: &mut dyn FnMut(),
    ) -> Result<Vec<String>, NotCompared> {
        let name = &self.builds[number].name;
        let failed = |sentence: String, said: String| NotCompared::Failed { sentence, said };
        let words = self.harness.list_words(&self.links[number]);
        let shown = words[1..].join(" ");
        let Ran { execution, output, .. } =
            self.execute(words, How::Timed, within, executor, tick).map_err(ended)?;
        if let End::Full(_) = execution.end {
            let how = how_ended(&execution.end, within);
            return Err(failed(format!("{name}, asked for its benches with {shown}, {how}"), execution.said));
        }
        let output =
            output.map_err(|why| failed(format!("the list of benches of {name} {why}"), String::new()))?;
        let is_whole = |end: &End| matches!(end, End::Ended(Ended::Exit(status)) if self.harness.is_listed(*status, &output));
        if !is_whole(&execution.end) {
            if let Some(benches) = self.one_by_one(number, within, executor, tick)? {
                return Ok(benches);
            }
            let how = how_ended(&execution.end, within);
            return Err(failed(format!("{name}, asked for its benches with {shown}, {how}"), execution.said));
        }
        let benches = self.harness.listed(&output);
        match benches.len() {
            0 => Err(failed(
                format!("{name} lists no benches; asked with {shown}, it wrote: {}", excerpt(output.trim())),
                execution.said,
            )),
            1..=MOST_BENCHES => Ok(benches),
            number => Err(failed(
                format!(
                    "{name} lists {number} benches; asked with {shown}, it may list at most {MOST_BENCHES}"
                ),
                execution.said,
            )),
        }
    }

    /// Lists each bench by itself, because one fails while all are listed. The failing bench stays in the list by its own name: when
    /// it is timed, it is left out with its message. `None` if the harness lists without executing, or if that list fails too.
    fn one_by_one(
        &self,
        number: usize,
        within: Option<Duration>,
        executor: &mut dyn Executor,
        tick: &mut dyn FnMut(),
    ) -> Result<Option<Vec<String>>, NotCompared> {
        let link = &self.links[number];
        let Some(words) = self.harness.name_words(link) else { return Ok(None) };
        let Ran { execution, output, .. } =
            self.execute(words, How::Timed, within, executor, tick).map_err(ended)?;
        let names = match (execution.end, output) {
            (End::Ended(Ended::Exit(0)), Ok(output)) => self.harness.named(&output),
            _ => return Ok(None),
        };
        let mut benches = Vec::new();
        for name in names {
            let words = self.harness.list_one_words(link, &name);
            let Ran { execution, output, .. } =
                self.execute(words, How::Timed, within, executor, tick).map_err(ended)?;
            let listed = match (execution.end, output) {
                (End::Ended(Ended::Exit(0)), Ok(output)) => self.harness.listed(&output),
                _ => vec![],
            };
            if listed.is_empty() { benches.push(name) } else { benches.extend(listed) }
        }
        Ok((!benches.is_empty()).then_some(benches))
    }

    pub(super) fn one(
        &self,
        (number, execution): (usize, u32),
        bench: &str,
        size: Size,
        within: Option<Duration>,
        executor: &mut dyn Executor,
        tick: &mut dyn FnMut(),
    ) -> Result<Done, Halt> {
        let words = self.harness.one_words(&self.fresh(number, execution), bench, size);
        let mut attempts = 0;
        loop {
            let Ran { execution, output, results } =
                self.execute(words.clone(), How::Timed, within, executor, tick)?;
            let took = Duration::from_nanos(execution.wall_ns);
            let figure = match execution.end {
                End::Ended(Ended::Exit(0)) => {
                    output.and_then(|output| self.harness.figure(&output, results.path()))
                }
                end => Err(format!("{}{}", how_ended(&end, within), last_words(&execution.said))),
            };
            attempts += 1;
            // The source of a bench may demand few iterations.
            if attempts == MOST_ATTEMPTS || !figure.as_ref().is_ok_and(|figure| figure.is_hasty) {
                return Ok(Done { figure: figure.map(|figure| figure.ns), took });
            }
        }
    }

    /// Makes a copy of a build, or returns the link if there is none. Their paths are of equal length.
    fn fresh(&self, number: usize, execution: u32) -> String {
        let layouts = self.layouts();
        let copy = self.copies[number * layouts + execution as usize % layouts].as_ref().and_then(|copies| {
            let mut copies = copies.try_borrow_mut().ok()?;
            copies.renew().ok()?.to_str().map(str::to_owned)
        });
        copy.unwrap_or_else(|| self.links[number].clone())
    }

    pub(super) fn link(&self, number: usize) -> &str {
        &self.links[number]
    }

    pub(super) fn execute(
        &self,
        words: Vec<String>,
        how: How,
        within: Option<Duration>,
        executor: &mut dyn Executor,
        tick: &mut dyn FnMut(),
    ) -> Result<Ran, Halt> {
        let results = PrivateDirectory::make(&self.place)
            .map_err(|why| Halt::Run(BenchError::NoProcess(why.into())))?;
        let file = results.path().join("output");
        let home = results.path().display().to_string();
        let order = Order {
            words,
            how,
            within,
            output: Output::File(file.clone()),
            most_output: Some(MOST_OUTPUT),
            // A new directory. Otherwise criterion compares with the user's results, and replaces them.
            variables: vec![("CRITERION_HOME".to_owned(), home)],
            ..self.order.clone()
        };
        let execution = executor.execute(&order, tick)?;
        Ok(Ran { execution, output: read(&file), results })
    }
}

pub(super) struct Ran {
    pub execution: Execution,
    output: Result<String, String>,
    results: PrivateDirectory,
}

fn read(file: &Path) -> Result<String, String> {
    match paths::read_regular(file, MOST_OUTPUT) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(why) => Err(format!("has an output that cannot be read: {why}")),
    }
}

/// Returns `: ` and the last words on standard error: the message of a panic, or the last line.
pub(super) fn last_words(said: &str) -> String {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    // Rust prints advice after the message, and Go the stacks of all goroutines.
    let last = lines().rfind(|line| !line.starts_with("note: run with `RUST_BACKTRACE"));
    match panic_of(lines()).or_else(|| last.map(str::to_owned)) {
        Some(line) => format!(": {}", excerpt(&line)),
        None => String::new(),
    }
}

/// `panicked: boom`, of Go or Rust.
fn panic_of<'t>(mut lines: impl Iterator<Item = &'t str>) -> Option<String> {
    let message = loop {
        let line = lines.next()?;
        if let Some(message) = line.strip_prefix("panic: ") {
            break message.strip_suffix(" [recovered]").unwrap_or(message);
        }
        if let Some((_, at)) = line.split_once(" panicked at ").filter(|_| line.starts_with("thread '")) {
            // Before Rust 1.73 the message precedes the place, in quotes.
            break match at.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
                Some((message, _)) => message,
                None => lines.next()?,
            };
        }
    };
    Some(format!("panicked: {message}"))
}

pub(super) fn ended(halt: Halt) -> NotCompared {
    match halt {
        Halt::Lost(why) => BenchError::NoEnvironment(why).into(),
        Halt::Run(error) => error.into(),
    }
}

/// Whether documents can hold the name of a bench.
pub fn is_nameable(bench: &str) -> bool {
    bench.len() <= LONGEST_NAME && !bench.contains(commands_a_reader)
}
