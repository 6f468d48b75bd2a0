//! Commands: programs in their own process group, in an environment that does not depend on tollgate's user.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs::File, os::unix::process::CommandExt};

use tollgate_model::text::commands_a_reader;
use tollgate_model::{Traced, traced::Ended};
use tollgate_os::{programs, workdir::Workdir};
use tollgate_trace::{Choice, Request, TraceError};

use crate::command::{answer::Answer, helper};
use crate::prelude::*;
use crate::{files::data_dir::opened, files::refusal::refused};

/// A failed step that is not a property of the environment.
pub(super) fn failed<T>(why: impl Into<String>) -> Step<T> {
    Err(Refusal::Fail(why.into()).into())
}

/// Returns the check of a command's result, or a failure that says what is `wrong`.
pub(super) fn left(who: &str, is_right: bool, check: String, wrong: &str) -> Step<String> {
    if is_right { Ok(check) } else { failed(format!("{who} exited with status 0, but {wrong}")) }
}

pub(super) fn on_files<T>(what: &str, outcome: std::io::Result<T>) -> Step<T> {
    outcome.map_err(|error| refused(what, &error).into())
}

/// Like [`on_files`] for a removal: a missing file counts as removed.
pub(super) fn removed(what: &str, outcome: std::io::Result<()>) -> Step<()> {
    match outcome {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        outcome => on_files(what, outcome),
    }
}

/// The home of commands: a directory of this run, and environment variables.
pub(super) struct Home {
    workdir: Workdir,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

pub(super) struct Command {
    pub words: Vec<OsString>,
    pub at: PathBuf,
    /// /dev/null by default.
    pub input: Option<PathBuf>,
    /// /dev/null by default.
    pub output: Option<PathBuf>,
}

impl Command {
    pub fn new<W: AsRef<OsStr>>(at: &Path, words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        Self { words, at: at.to_owned(), input: None, output: None }
    }

    pub fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

impl Home {
    pub fn new(directory: &Path, workdir: &Workdir) -> Step<Self> {
        let temporary = directory.join("tmp");
        on_files("mkdir(2)", std::fs::create_dir(&temporary))?;
        let variable = |name: &str, value: &OsStr| (OsString::from(name), value.to_owned());
        let word = |name: &str, value: &str| variable(name, OsStr::new(value));
        let environment = vec![
            variable("PATH", &programs::search_path()),
            variable("HOME", directory.as_os_str()),
            variable("TMPDIR", temporary.as_os_str()),
            word("LC_ALL", "C"),
            word("TZ", "UTC"),
            // Git must not find a repository above ours (git(1)).
            variable("GIT_CEILING_DIRECTORIES", directory.as_os_str()),
            word("GIT_CONFIG_NOSYSTEM", "1"),
            word("GIT_CONFIG_GLOBAL", "/dev/null"),
            word("GIT_ATTR_NOSYSTEM", "1"),
            word("GIT_TERMINAL_PROMPT", "0"),
        ];
        Ok(Self { workdir: workdir.clone(), directory: directory.to_owned(), environment })
    }

    /// Runs an unmeasured command, which must exit with status 0.
    pub fn run(&self, command: &Command, context: &mut RunContext) -> Step<()> {
        let deadline = context.deadline;
        let ending = self.in_group(command, deadline, context, || {
            let mut process = std::process::Command::new(&command.words[0]);
            let error = process.args(&command.words[1..]).exec();
            // Shells' exit statuses for a missing program, and for one that cannot be executed.
            if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
        })?;
        match ending {
            Ending::Finished => Ok(()),
            Ending::OutOfTime => Err(Stop::Time),
            other => failed(self.complaint(command, &other.describe(Duration::ZERO))),
        }
    }

    /// Runs a command that this backend traces. It must exit with status 0.
    pub fn follow(
        &self,
        command: &Command,
        by: Choice,
        deadline: Instant,
        context: &mut RunContext,
    ) -> Step<Traced> {
        let answer = on_files("memfd_create(2)", Answer::new())?;
        let ending = self.in_group(command, deadline, context, || {
            let request = Request { by, ..Request::new(command.words.clone()) };
            let outcome = tollgate_trace::trace(&request).map(|trace| trace.traced).map_err(untraced);
            answer.give(&outcome)
        })?;
        match ending {
            Ending::Finished => {}
            Ending::OutOfTime => return Err(Stop::Time),
            other => {
                return failed(format!(
                    "the tracer of {}: {}",
                    command.line(),
                    other.describe(Duration::ZERO)
                ));
            }
        }
        let outcome: std::io::Result<Result<Traced>> = answer.take();
        let traced = outcome.map_err(|error| fail!("the trace cannot be read: {error}"))??;
        match traced.ended {
            None | Some(Ended::Exit(0)) => Ok(traced),
            Some(ended) => failed(self.complaint(command, &Ending::from(ended).describe(Duration::ZERO))),
        }
    }

    /// Runs `work` in the command's place, as the first process of a group.
    fn in_group(
        &self,
        command: &Command,
        deadline: Instant,
        context: &mut RunContext,
        work: impl FnOnce() -> i32,
    ) -> Step<Ending> {
        opened(&self.workdir)?;
        let nowhere = || File::options().read(true).write(true).open("/dev/null");
        let input = on_files("open(2)", command.input.as_deref().map_or_else(nowhere, File::open))?;
        let output = on_files("open(2)", command.output.as_deref().map_or_else(nowhere, File::create))?;
        let complaints = on_files("open(2)", File::create(self.complaints()))?;
        let what = command.line();
        let settle = || {
            enter(&self.environment, &command.at, [&input, &output, &complaints].map(AsRawFd::as_raw_fd))?;
            Ok::<i32, std::io::Error>(work())
        };
        let goes_on = || {
            context.say(&what);
            true
        };
        let ending = group::run(|| settle().unwrap_or(1), deadline, goes_on);
        match ending {
            Err(error) => Err(Stop::Run(BenchError::NoProcess(error))),
            Ok(Ending::Interrupted) => {
                Err(Stop::Run(BenchError::Interrupted(interrupt::requested().unwrap_or(libc::SIGINT))))
            }
            Ok(ending) => Ok(ending),
        }
    }

    /// The file for standard error of commands.
    fn complaints(&self) -> PathBuf {
        self.directory.join("complaints")
    }

    /// Formats as `git checkout -q v2: its process ended with status 128: fatal: not a git repository`.
    fn complaint(&self, command: &Command, how: &str) -> String {
        let said = first_line(&self.complaints());
        let said = if said.is_empty() { said } else { format!(": {said}") };
        format!("{}: {how}{said}", command.line())
    }
}

fn enter(environment: &[(OsString, OsString)], at: &Path, standard: [RawFd; 3]) -> std::io::Result<()> {
    std::env::set_current_dir(at)?;
    helper::set_streams(standard)?;
    for (name, _) in std::env::vars_os() {
        // SAFETY: this process is a fork with one thread.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in environment {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}

fn untraced(error: TraceError) -> Refusal {
    match error {
        TraceError::NotFound(_) => Refusal::Skip(error.to_string()),
        _ => Refusal::Fail(error.to_string()),
    }
}

pub(super) fn is_here(program: &str) -> bool {
    let can_run = |file: PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&programs::search_path()).any(|directory| can_run(directory.join(program)))
}

/// Returns the first non-empty line of a file, without control characters; empty if there is none.
pub(super) fn first_line(file: &Path) -> String {
    const MOST: u64 = 4096;
    const LONGEST: usize = 160;
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !commands_a_reader(*c)).take(LONGEST).collect()
}
