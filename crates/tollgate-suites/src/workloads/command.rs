//! Programs that are run: in a group of their own, in surroundings that do not depend on who runs tollgate.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, Read, Seek};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use tollgate_model::Traced;
use tollgate_model::traced::Ended;
use tollgate_os::identity::FileAccess;
use tollgate_os::workdir::Workdir;
use tollgate_trace::{Request, TraceError};

use crate::files::place::opened;
use crate::files::refusal::refused;
use tollgate_engine::{BenchError, Ending, Refusal, RunContext, group, interrupt};

/// Why a step was not done.
#[derive(Debug)]
pub(super) enum Stop {
    /// The whole run ends.
    Run(BenchError),
    /// The time is over.
    Time,
    /// This case has no price.
    Case(Refusal),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Case(refusal)
    }
}

/// What a step came to.
pub(super) type Step<T> = Result<T, Stop>;

/// A step failed, and that is no property of the place.
pub(super) fn failed<T>(why: impl Into<String>) -> Step<T> {
    Err(Refusal::Fail(why.into()).into())
}

/// A step on files, of which an error says what the place does not allow.
pub(super) fn on_files<T>(what: &str, outcome: std::io::Result<T>) -> Step<T> {
    outcome.map_err(|error| refused(what, &error).into())
}

/// Who owns the working directory, where another user could exchange what lies there: while this lives, this thread accesses files with
/// that user's identity, and the commands that it starts have no other.
pub(super) struct Owner {
    workdir: Workdir,
    access: Option<FileAccess>,
}

impl Owner {
    /// Takes the identity.
    ///
    /// # Errors
    /// [`Refusal::Skip`] where it cannot be taken; then nothing may be done there.
    pub fn enter(workdir: &Workdir) -> Step<Self> {
        let access = workdir.enter().map_err(|error| Refusal::Skip(error.to_string()))?;
        let owner = Self { workdir: workdir.clone(), access };
        owner.expect_unchanged()?;
        Ok(owner)
    }

    /// That the directory is the one that was made.
    fn expect_unchanged(&self) -> Step<()> {
        opened(&self.workdir)?;
        Ok(())
    }
}

/// The surroundings of programs: a directory of this run, and an environment.
pub(super) struct Home {
    owner: Owner,
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// A program with arguments, and where it is run.
pub(super) struct Command {
    pub words: Vec<OsString>,
    /// Its current directory.
    pub at: PathBuf,
    /// Where its input comes from; otherwise it has none.
    pub input: Option<PathBuf>,
    /// Where its output goes to; otherwise nowhere.
    pub output: Option<PathBuf>,
}

impl Command {
    /// One without input and output.
    pub fn new<W: AsRef<OsStr>>(at: &Path, words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        Self { words, at: at.to_owned(), input: None, output: None }
    }

    /// As one would type it.
    pub fn line(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }
}

impl Home {
    /// In a directory that is empty.
    ///
    /// # Errors
    /// What making a directory in it says.
    pub fn new(directory: &Path, owner: Owner) -> Step<Self> {
        let temporary = directory.join("tmp");
        on_files("mkdir(2)", std::fs::create_dir(&temporary))?;
        let variable = |name: &str, value: &OsStr| (OsString::from(name), value.to_owned());
        let word = |name: &str, value: &str| variable(name, OsStr::new(value));
        let environment = vec![
            variable("PATH", &path()),
            variable("HOME", directory.as_os_str()),
            variable("TMPDIR", temporary.as_os_str()),
            word("LC_ALL", "C"),
            word("TZ", "UTC"),
            // No repository above ours is ever taken for it (git(1)).
            variable("GIT_CEILING_DIRECTORIES", directory.as_os_str()),
            word("GIT_CONFIG_NOSYSTEM", "1"),
            word("GIT_CONFIG_GLOBAL", "/dev/null"),
            word("GIT_ATTR_NOSYSTEM", "1"),
            word("GIT_TERMINAL_PROMPT", "0"),
        ];
        Ok(Self { owner, directory: directory.to_owned(), environment })
    }

    /// Runs a program that is part of no price; it must end with status 0.
    ///
    /// # Errors
    /// That it did not, in its own words.
    pub fn run(&self, command: &Command, context: &mut RunContext) -> Step<()> {
        let deadline = context.deadline;
        let ending = self.in_group(command, deadline, context, || {
            if let Some(identity) = self.owner.workdir.identity()
                && let Err(error) = identity.take()
            {
                eprintln!("{error}");
                return 126;
            }
            let mut process = std::process::Command::new(&command.words[0]);
            let error = process.args(&command.words[1..]).exec();
            // Shells say so of what is not there, and of what cannot be executed.
            if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
        })?;
        match ending {
            Ending::Finished => Ok(()),
            Ending::OutOfTime => Err(Stop::Time),
            other => failed(self.complaint(command, &other.describe(Duration::ZERO))),
        }
    }

    /// Runs a program through the tracer; it must end with status 0.
    ///
    /// # Errors
    /// That it did not, in its own words; that the time was over.
    pub fn follow(&self, command: &Command, deadline: Instant, context: &mut RunContext) -> Step<Traced> {
        // No file in the directory: the tracer keeps the rights of root, and another user may own the directory.
        let told = rustix::fs::memfd_create("followed", MemfdFlags::CLOEXEC).map_err(std::io::Error::from);
        let mut told = File::from(on_files("memfd_create(2)", told)?);
        let ending = self.in_group(command, deadline, context, || {
            if let Some(access) = &self.owner.access {
                access.end();
            }
            let identity = self.owner.workdir.identity();
            let request = Request { identity, ..Request::new(command.words.clone()) };
            let outcome = tollgate_trace::trace(&request).map(|trace| trace.traced).map_err(Untraced::of);
            match serde_json::to_writer(BufWriter::new(&told), &outcome) {
                Ok(()) => 0,
                Err(_) => 1,
            }
        })?;
        match ending {
            Ending::Finished => {}
            Ending::OutOfTime => return Err(Stop::Time),
            other => {
                return failed(format!(
                    "who followed {}: {}",
                    command.line(),
                    other.describe(Duration::ZERO)
                ));
            }
        }
        on_files("lseek(2)", told.rewind())?;
        let outcome: Result<Traced, Untraced> = match serde_json::from_reader(std::io::BufReader::new(told)) {
            Ok(outcome) => outcome,
            Err(error) => return failed(format!("what was followed cannot be read: {error}")),
        };
        let traced = outcome.map_err(Refusal::from)?;
        match traced.ended {
            Ended::Exit(0) => Ok(traced),
            Ended::Exit(status) => {
                failed(self.complaint(command, &Ending::Exited(status).describe(Duration::ZERO)))
            }
            Ended::Signal(signal) => {
                failed(self.complaint(command, &Ending::Killed(signal).describe(Duration::ZERO)))
            }
        }
    }

    /// Does `work` where the command is to be run, as the first process of a group.
    fn in_group(
        &self,
        command: &Command,
        deadline: Instant,
        context: &mut RunContext,
        work: impl FnOnce() -> i32,
    ) -> Step<Ending> {
        self.owner.expect_unchanged()?;
        let nowhere = || File::options().read(true).write(true).open("/dev/null");
        let input = on_files("open(2)", command.input.as_deref().map_or_else(nowhere, open))?;
        let output = on_files("open(2)", command.output.as_deref().map_or_else(nowhere, create))?;
        let complaints = on_files("open(2)", create(&self.complaints()))?;
        let what = command.line();
        let settle = || {
            enter(&self.environment, &command.at, [&input, &output, &complaints].map(AsRawFd::as_raw_fd))?;
            Ok::<i32, std::io::Error>(work())
        };
        let ending = group::run(|| settle().unwrap_or(1), deadline, || context.say(&what));
        match ending {
            Err(error) => Err(Stop::Run(BenchError::NoProcess(error))),
            Ok(Ending::Interrupted) => {
                Err(Stop::Run(BenchError::Interrupted(interrupt::requested().unwrap_or(libc::SIGINT))))
            }
            Ok(ending) => Ok(ending),
        }
    }

    /// What programs say on their standard error.
    fn complaints(&self) -> PathBuf {
        self.directory.join("complaints")
    }

    /// `git checkout -q v2: its process ended with status 128: fatal: not a git repository`.
    fn complaint(&self, command: &Command, how: &str) -> String {
        let said = first_line(&self.complaints());
        let said = if said.is_empty() { said } else { format!(": {said}") };
        format!("{}: {how}{said}", command.line())
    }
}

/// Makes this process one that a program can be run in.
fn enter(environment: &[(OsString, OsString)], at: &Path, standard: [RawFd; 3]) -> std::io::Result<()> {
    std::env::set_current_dir(at)?;
    for (number, descriptor) in (0..).zip(standard) {
        // SAFETY: open descriptors of this process.
        if unsafe { libc::dup2(descriptor, number) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    for (name, _) in std::env::vars_os() {
        // SAFETY: this process is a copy with one thread.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in environment {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}

/// Why a program was not followed, on its way from one process to the other.
#[derive(serde::Serialize, serde::Deserialize)]
struct Untraced {
    is_missing: bool,
    why: String,
}

impl Untraced {
    fn of(error: TraceError) -> Self {
        Self { is_missing: matches!(error, TraceError::NotFound(_)), why: error.to_string() }
    }
}

impl From<Untraced> for Refusal {
    fn from(Untraced { is_missing, why }: Untraced) -> Self {
        if is_missing { Self::Skip(why) } else { Self::Fail(why) }
    }
}

/// Opens a regular file for reading. What the directory's owner put in its place, such as a link or a FIFO, is neither followed nor
/// waited for.
pub(super) fn open(path: &Path) -> std::io::Result<File> {
    regular(File::options().read(true).custom_flags(IN_PLACE).open(path)?)
}

/// Makes a file, or empties the regular file that is there, as [`open`].
pub(super) fn create(path: &Path) -> std::io::Result<File> {
    regular(File::options().write(true).create(true).truncate(true).custom_flags(IN_PLACE).open(path)?)
}

const IN_PLACE: libc::c_int = libc::O_NOFOLLOW | libc::O_NONBLOCK;

fn regular(file: File) -> std::io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::Error::other("something that is no regular file has its name")),
    }
}

/// Where programs are looked for.
fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// Whether there is a program of this name.
pub(super) fn is_here(program: &str) -> bool {
    let can_run = |file: PathBuf| {
        file.metadata().is_ok_and(|told| told.is_file() && told.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path())
        .any(|directory| directory.is_absolute() && can_run(directory.join(program)))
}

/// The first line of a file that is not empty, without what a terminal would obey; empty where there is none.
pub(super) fn first_line(file: &Path) -> String {
    const MOST: u64 = 4096;
    const LONGEST: usize = 160;
    let mut bytes = Vec::new();
    let read = open(file).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
}
