//! Containers: this program as an agent, started by an installed runtime.
//!
//! Each runtime gets a root file system made for it: this program's file, a directory for files, the machine's program
//! directories, read-only, and the kernel's file systems. The container has no network, its processors are not restricted,
//! and it has the runtime's default capabilities. Everything that a runtime stores is in the private directory.
//!
//! `bundle` makes the directories and config.json of OCI runtimes, `cgroups` finds the cgroups that a runtime makes, and
//! `system` lists the machine's programs. The other files have one runtime each.

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

pub(crate) use bundle::{Bundle, Separation, config};

pub(crate) const WORK: &str = "/work";
pub(crate) const PROGRAM: &str = "/tollgate";

/// Argument with which this program is run to see whether a container works: it prints much, makes nothing, and ends.
pub(crate) const TRIED: &str = "--help";

words! {
    Runtime:
    Bwrap = "bwrap",
    Runc = "runc",
    Crun = "crun",
    Podman = "podman",
    /// Needs its daemon.
    Docker = "docker",
    Nspawn = "nspawn"
}

#[derive(Debug, Default)]
pub(crate) struct Container {
    /// `None` for the first runtime that works.
    pub runtime: Option<Runtime>,
    /// By default, the filter of containers.
    pub seccomp: Seccomp,
}

/// Directories of one environment, as absolute paths. The caller removes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paths<'a> {
    /// For what the runtime makes.
    private: &'a Path,
    /// For the files that are measured; `None` for a directory in `private`.
    work: Option<&'a Path>,
}

impl<'a> Paths<'a> {
    pub fn new(private: &'a PrivateDirectory, work: Option<&'a PrivateDirectory>) -> Self {
        Self { private: private.path(), work: work.map(PrivateDirectory::path) }
    }

    pub fn private(self) -> &'a Path {
        self.private
    }

    pub fn work(self) -> &'a Path {
        self.work.unwrap_or(self.private)
    }
}

pub(crate) struct Order<'a> {
    pub program: &'a Path,
    /// Command inside the container: the program with its arguments, or a shell.
    pub inside: Vec<OsString>,
    pub private: &'a Path,
    work: Option<&'a Path>,
    /// Unique name of this container, of letters, digits and hyphens.
    pub id: String,
    pub seccomp: &'a Seccomp,
}

/// Prepares a container in a private directory, which the caller removes. If no runtime is named, it takes the first that works;
/// `cleanup` undoes what the attempts leave. If none works, the error has the reason for each.
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

/// Like [`prepare`], for this runtime, with a shell in place of the program.
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
    Err(unusable!("no container runtime works here ({})", reasons.join("; ")))
}

/// Has a runtime run this program with `--help`. The error is the reason, without the runtime's name.
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

/// Runs a prepared environment to its end, and undoes it. The error is the command's message, without its name.
pub(crate) fn run(
    prepared: &Prepared,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<(), EnvironmentError> {
    let _undone = cleanup.promise(&prepared.undo).map_err(|error| {
        unusable!("the cleanup process cannot be reached: {}", crate::error::plainly(error))
    })?;
    let (program, arguments) =
        prepared.command.split_first().ok_or_else(|| unusable!("there is no command"))?;
    commands::run(Path::new(program), arguments, stop).map(drop).map_err(|error| match error {
        EnvironmentError::Unusable(said) => EnvironmentError::Unusable(reason(&said)),
        other => other,
    })
}

/// Strips the program names at the start of a message.
fn reason(said: &str) -> String {
    let is_name = |word: &str| !word.contains([' ', '/']) && word.len() < 20;
    match said.split_once(": ") {
        Some((name, rest)) if is_name(name) => reason(rest),
        _ => said.to_owned(),
    }
}

/// Returns whether a path can be used in every runtime's options, where `:` and `,` are separators, and in config.json.
fn is_plain(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|path| !path.contains([':', ',', '\\', '"']) && !path.contains(char::is_control))
}

/// Returns the file that environments get as this program: its executable, or a copy if that was removed or replaced.
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
    /// Names the container after the private directory and `name`.
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

    pub fn with_shell(self) -> Self {
        Self { inside: SHELL.map(OsString::from).to_vec(), ..self }
    }

    pub fn work(&self) -> Result<PathBuf, EnvironmentError> {
        let work = self.work.filter(|work| is_plain(work));
        work.map_or_else(|| self.directory("work"), |work| Ok(work.to_owned()))
    }

    pub fn directory(&self, name: &str) -> Result<PathBuf, EnvironmentError> {
        let path = self.private.join(&self.id).join(name);
        std::fs::create_dir_all(&path)
            .map_err(|error| unusable!("{}: {}", path.display(), crate::error::plainly(error)))?;
        Ok(path)
    }
}

impl Runtime {
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Nspawn => "systemd-nspawn",
            other => other.name(),
        }
    }

    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Bwrap => "bubblewrap",
            Self::Docker => "docker.io",
            Self::Nspawn => "systemd-container",
            other => other.name(),
        }
    }

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

    /// Its version in its own words: `runc version 1.1.5`. Files that it makes for this are in the private directory.
    pub(crate) fn version(self, private: &Path, stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
        let program = self.find()?;
        match self {
            Self::Podman => podman::version(&program, private, stop),
            Self::Docker => docker::version(&program, stop),
            _ => commands::run(&program, &["--version"], stop),
        }
    }
}

pub(crate) struct Words(Vec<OsString>);

impl Words {
    pub fn new(program: &Path) -> Self {
        Self(vec![program.into()])
    }

    pub fn add<S: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = S>) -> &mut Self {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Adds an option and its value as one word: `--root=/x`.
    pub fn option(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.0.push(joined(&[OsStr::new(name), OsStr::new("="), value.as_ref()]));
        self
    }

    pub fn done(&mut self) -> Vec<OsString> {
        std::mem::take(&mut self.0)
    }
}

pub(crate) fn joined(pieces: &[&OsStr]) -> OsString {
    pieces.iter().fold(OsString::new(), |mut word, piece| {
        word.push(piece);
        word
    })
}

#[cfg(test)]
mod tests;
