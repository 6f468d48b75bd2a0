//! Containers: this program as an agent behind a runtime that is installed.
//!
//! Each runtime gets a root file system of our own: this program's file, a directory for files, the machine's directories of programs,
//! read-only, and the file systems of the kernel. It has no network, its processors are not restricted, and its capabilities are those of the
//! runtime's defaults. What a runtime keeps, it keeps in the private directory.
//!
//! `bundle`: directories, and config.json of the OCI runtimes. `cgroups`: those that a runtime makes. `system`: the machine's
//! programs. The other files have a runtime each.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use tollgate_os::private::PrivateDirectory;

use crate::agent::Agent;
use crate::cleanup::Cleanup;
use crate::commands;
use crate::error::{EnvironmentError, unusable};
use crate::pairs::words;
use crate::prepared::Prepared;
use crate::seccomp::Seccomp;
use crate::shell::SHELL;

mod bundle;
mod bwrap;
mod cgroups;
mod docker;
mod nspawn;
mod oci;
mod podman;
mod system;

pub(crate) use bundle::{Bundle, Place, config};

/// The directory for files in a container.
pub(crate) const WORK: &str = "/work";
/// This program's file in a container.
pub(crate) const PROGRAM: &str = "/tollgate";

/// What this program is run with to see whether a container works: it says much, makes nothing, and ends.
pub(crate) const TRIED: &str = "--help";

words! {
    /// A program that makes containers.
    Runtime:
    /// bubblewrap.
    Bwrap = "bwrap",
    /// runc.
    Runc = "runc",
    /// crun.
    Crun = "crun",
    /// Podman.
    Podman = "podman",
    /// Docker, with its daemon.
    Docker = "docker",
    /// systemd-nspawn.
    Nspawn = "nspawn"
}

/// A container that is asked for.
#[derive(Debug, Default)]
pub(crate) struct Container {
    /// None for the first that works.
    pub runtime: Option<Runtime>,
    /// The filter of its processes; the default is that of containers.
    pub seccomp: Seccomp,
}

/// Directories of an environment alone, as absolute paths. Their maker removes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paths<'a> {
    /// For what the runtime makes.
    private: &'a Path,
    /// For the files that are measured; None for one in the other.
    work: Option<&'a Path>,
}

impl<'a> Paths<'a> {
    /// Those of directories that other programs may be given.
    pub fn new(private: &'a PrivateDirectory, work: Option<&'a PrivateDirectory>) -> Self {
        Self { private: private.path(), work: work.map(PrivateDirectory::path) }
    }

    /// For what the runtime makes.
    pub fn private(self) -> &'a Path {
        self.private
    }

    /// For the files that are measured, which are in the other one where there is none for them.
    pub fn work(self) -> &'a Path {
        self.work.unwrap_or(self.private)
    }
}

/// What a runtime is to start, and where it may keep what it makes.
pub(crate) struct Order<'a> {
    /// The program's file on this machine.
    pub program: &'a Path,
    /// What is started in the container: the program with its arguments, or a shell.
    pub inside: Vec<OsString>,
    pub private: &'a Path,
    work: Option<&'a Path>,
    /// A name of this container alone, of letters, digits and hyphens.
    pub id: String,
    /// The filter of its calls.
    pub seccomp: &'a Seccomp,
}

/// Prepares a container in a private directory, which its maker removes. Where the runtime is not named, it is the first that runs
/// this program; `cleanup` undoes what those leave that are tried.
///
/// # Errors
/// A sentence: the runtime is not installed or cannot be used here, or none works, with the reason of each.
pub(crate) fn prepare(
    spec: &Container,
    agent: &Agent,
    paths: Paths<'_>,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<Prepared, EnvironmentError> {
    let runtime = match spec.runtime {
        Some(runtime) => runtime,
        None => first(agent, paths, cleanup, stop)?,
    };
    let program = agent_file(agent, paths.private)?;
    let order = Order::new(&program, agent.arguments(), paths, runtime.name(), &spec.seccomp);
    let prepared = runtime.prepare(&order).map_err(|why| unusable!("{runtime}: {why}"))?;
    Ok(Prepared { runtime: Some(runtime.name()), ..prepared })
}

/// Prepares a container of this runtime with a shell in the program's place, in the private directory of [`prepare`].
///
/// # Errors
/// A sentence.
pub(crate) fn prepare_shell(
    runtime: Runtime,
    seccomp: &Seccomp,
    agent: &Agent,
    paths: Paths<'_>,
) -> Result<Prepared, EnvironmentError> {
    let program = agent_file(agent, paths.private)?;
    let name = format!("{runtime}-shell");
    let order = Order::new(&program, &[], paths, &name, seccomp).with_shell();
    runtime.prepare(&order).map_err(|why| unusable!("{runtime}: {why}"))
}

/// The first runtime that runs this program here.
fn first(
    agent: &Agent,
    paths: Paths<'_>,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<Runtime, EnvironmentError> {
    let mut reasons = Vec::new();
    for runtime in Runtime::ALL {
        match try_out(runtime, agent, paths, cleanup, stop) {
            Ok(_) => return Ok(runtime),
            Err(EnvironmentError::Interrupted) => return Err(EnvironmentError::Interrupted),
            Err(why) => reasons.push(format!("{runtime}: {why}")),
        }
    }
    Err(unusable!("no runtime makes a container here ({})", reasons.join("; ")))
}

/// Has a runtime run this program, for its help.
///
/// # Errors
/// The reason, without the runtime's name.
pub(crate) fn try_out(
    runtime: Runtime,
    agent: &Agent,
    paths: Paths<'_>,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<(), EnvironmentError> {
    let program = agent_file(agent, paths.private)?;
    let arguments = [TRIED.into()];
    let name = format!("{runtime}-tried");
    let prepared = runtime.prepare(&Order::new(&program, &arguments, paths, &name, &Seccomp::Default))?;
    run(&prepared, cleanup, stop)
}

/// Runs a prepared environment to its end, and undoes it.
///
/// # Errors
/// What the command said, without its name.
pub(crate) fn run(
    prepared: &Prepared,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<(), EnvironmentError> {
    let _undone = cleanup
        .promise(&prepared.undo)
        .map_err(|error| unusable!("the cleanup process is not reached: {}", crate::error::plainly(error)))?;
    let (program, arguments) =
        prepared.command.split_first().ok_or_else(|| unusable!("there is no command"))?;
    commands::run(Path::new(program), arguments, stop).map(drop).map_err(|error| match error {
        EnvironmentError::Unusable(said) => EnvironmentError::Unusable(reason(&said)),
        other => other,
    })
}

/// A program's message without the names before it.
fn reason(said: &str) -> String {
    let is_name = |word: &str| !word.contains([' ', '/']) && word.len() < 20;
    match said.split_once(": ") {
        Some((name, rest)) if is_name(name) => reason(rest),
        _ => said.to_owned(),
    }
}

/// Whether a path can stand in every runtime's options, where `:` and `,` divide, and in config.json.
fn is_plain(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|path| !path.contains([':', ',', '\\', '"']) && !path.contains(char::is_control))
}

/// The file that environments of this machine see as this program: its own, or a copy where that was removed or replaced.
pub(crate) fn agent_file(agent: &Agent, private: &Path) -> Result<PathBuf, EnvironmentError> {
    let own = agent.open().ok().and_then(|(file, _)| file.metadata().ok());
    let named = agent.program().metadata().ok();
    let id = |metadata: std::fs::Metadata| {
        (std::os::unix::fs::MetadataExt::dev(&metadata), std::os::unix::fs::MetadataExt::ino(&metadata))
    };
    if named.is_some() && named.map(id) == own.map(id) && is_plain(agent.program()) {
        return Ok(agent.program().to_owned());
    }
    let copy = private.join("program");
    if !copy.exists() {
        agent.copy_to(&copy)?;
    }
    Ok(copy)
}

impl<'a> Order<'a> {
    /// One whose names are those of the private directory and `name`.
    pub fn new(
        program: &'a Path,
        arguments: &[OsString],
        paths: Paths<'a>,
        name: &str,
        seccomp: &'a Seccomp,
    ) -> Self {
        let Paths { private, work } = paths;
        let own = private.file_name().unwrap_or_default().to_string_lossy();
        let own: String = own.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let prefix = if own.starts_with("tollgate-") { "" } else { "tollgate-" };
        let inside = [&[OsString::from(PROGRAM)], arguments].concat();
        Self { program, inside, private, work, id: format!("{prefix}{own}-{name}"), seccomp }
    }

    /// The same with a shell in the program's place, see [`SHELL`].
    pub fn with_shell(self) -> Self {
        Self { inside: SHELL.map(OsString::from).to_vec(), ..self }
    }

    /// The directory that is [`WORK`] in the container.
    pub fn work(&self) -> Result<PathBuf, EnvironmentError> {
        let work = self.work.filter(|work| is_plain(work));
        work.map_or_else(|| self.directory("work"), |work| Ok(work.to_owned()))
    }

    /// A directory of this container alone; it is made.
    pub fn directory(&self, name: &str) -> Result<PathBuf, EnvironmentError> {
        let path = self.private.join(&self.id).join(name);
        std::fs::create_dir_all(&path)
            .map_err(|error| unusable!("{}: {}", path.display(), crate::error::plainly(error)))?;
        Ok(path)
    }
}

impl Runtime {
    /// Its program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Nspawn => "systemd-nspawn",
            other => other.name(),
        }
    }

    /// The Debian package that has it.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Bwrap => "bubblewrap",
            Self::Docker => "docker.io",
            Self::Nspawn => "systemd-container",
            other => other.name(),
        }
    }

    /// Its program's file.
    ///
    /// # Errors
    /// It is not installed.
    pub(crate) fn find(self) -> Result<PathBuf, EnvironmentError> {
        commands::find(self.program())
            .ok_or_else(|| unusable!("not installed (Debian package {})", self.package()))
    }

    fn prepare(self, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
        let program = self.find()?;
        match self {
            Self::Bwrap => bwrap::prepare(&program, order),
            Self::Runc | Self::Crun => oci::prepare(&program, order),
            Self::Podman => podman::prepare(&program, order),
            Self::Docker => docker::prepare(&program, order),
            Self::Nspawn => nspawn::prepare(&program, order),
        }
    }

    /// Its version, as it says it itself: `runc version 1.1.5`. What it makes for that is in the private directory.
    pub(crate) fn version(self, private: &Path, stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
        let program = self.find()?;
        match self {
            Self::Podman => podman::version(&program, private, stop),
            Self::Docker => docker::version(&program, stop),
            _ => commands::run(&program, &["--version"], stop),
        }
    }
}

/// Words of a command, one after the other.
pub(crate) struct Words(Vec<OsString>);

impl Words {
    pub fn new(program: &Path) -> Self {
        Self(vec![program.into()])
    }

    pub fn add<S: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = S>) -> &mut Self {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// An option and its value in one word: `--root=/x`.
    pub fn option(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.0.push(joined(&[OsStr::new(name), OsStr::new("="), value.as_ref()]));
        self
    }

    pub fn done(&mut self) -> Vec<OsString> {
        std::mem::take(&mut self.0)
    }
}

/// Pieces of one word.
pub(crate) fn joined(pieces: &[&OsStr]) -> OsString {
    pieces.iter().fold(OsString::new(), |mut word, piece| {
        word.push(piece);
        word
    })
}

#[cfg(test)]
mod tests;
