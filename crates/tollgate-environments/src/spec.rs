//! Names of environments: `KIND[:key=value,…]`.
//!
//! `settings` has the keys of `host`, and `vm` those of a guest, and `text` the sentences for a name that is wrong.

use std::fmt;
use std::str::FromStr;

use tollgate_model::text::excerpt;

mod settings;
mod text;
mod vm;

pub use settings::{Host, Sched, Seccomp, Setting};
pub use text::SpecError;
pub use vm::{Accel, Cache, Vm, Vmm};

use text::{near, one_of, pairs};

/// An environment, as a user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// This machine, with settings of the measured processes.
    Host(Host),
    /// A container of one of several runtimes.
    Container(Container),
    /// The gVisor sandbox.
    Gvisor(Gvisor),
    /// A guest with a Linux of its own.
    Vm(Vm),
    /// Another machine.
    Ssh(Ssh),
    /// What a command starts.
    Exec(Exec),
}

/// The forms of all kinds, for messages.
pub const FORMS: &str = "host, container, gvisor, vm, ssh:HOST and exec:PREFIX";
const KINDS: [&str; 6] = ["host", "container", "gvisor", "vm", "ssh", "exec"];

/// A program that makes containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// bubblewrap.
    Bwrap,
    /// runc.
    Runc,
    /// crun.
    Crun,
    /// Podman.
    Podman,
    /// Docker, with its daemon.
    Docker,
    /// systemd-nspawn.
    Nspawn,
}

impl Runtime {
    /// All of them, in the order in which names are listed.
    pub const ALL: [Self; 6] =
        [Self::Bwrap, Self::Runc, Self::Crun, Self::Podman, Self::Docker, Self::Nspawn];

    /// Its value of the key `runtime`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Runc => "runc",
            Self::Crun => "crun",
            Self::Podman => "podman",
            Self::Docker => "docker",
            Self::Nspawn => "nspawn",
        }
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `container[:runtime=NAME,seccomp=FILTER]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// None for the first that works.
    pub runtime: Option<Runtime>,
    /// The filter of its processes; the default is that of containers.
    pub seccomp: Seccomp,
}

/// `gvisor[:platform=NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gvisor {
    /// `systrap`, `ptrace` or `kvm`; None for the sandbox's own default.
    pub platform: Option<String>,
}

/// `ssh:HOST`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    host: String,
}

impl Ssh {
    /// As ssh(1) takes it: `HOST`, `USER@HOST` or a name of ssh_config(5).
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// `exec:PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    prefix: String,
    words: Vec<String>,
}

impl Exec {
    /// The prefix, split into words; there is at least one.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(given: &str) -> Result<Self, SpecError> {
        let wrong = |why: String| SpecError::of(given, &why);
        if given.chars().any(char::is_control) {
            return Err(wrong("a name of an environment has no control characters".to_owned()));
        }
        let (kind, rest) = given.split_once(':').map_or((given, None), |(kind, rest)| (kind, Some(rest)));
        match kind {
            "host" => Host::of(rest).map(Self::Host),
            "container" => container(rest).map(Self::Container),
            "gvisor" => gvisor(rest).map(Self::Gvisor),
            "vm" => Vm::of(rest).map(Self::Vm),
            "ssh" => ssh(rest).map(Self::Ssh),
            "exec" => exec(rest).map(Self::Exec),
            "" => Err(format!("the kind of the environment is missing: there are {FORMS}")),
            _ => Err(format!(
                "there is no environment {}{}: there are {FORMS}",
                excerpt(kind),
                near(kind, &KINDS)
            )),
        }
        .map_err(wrong)
    }
}

fn container(rest: Option<&str>) -> Result<Container, String> {
    let mut made = Container::default();
    for (key, value) in pairs("container", &["runtime", "seccomp"], rest)? {
        match key {
            "runtime" => {
                let known = Runtime::ALL.into_iter().find(|runtime| runtime.name() == value);
                made.runtime =
                    Some(known.ok_or_else(|| one_of("runtime", value, &Runtime::ALL.map(Runtime::name)))?);
            }
            _ => made.seccomp = Seccomp::of(value)?,
        }
    }
    Ok(made)
}

fn gvisor(rest: Option<&str>) -> Result<Gvisor, String> {
    const PLATFORMS: [&str; 3] = ["systrap", "ptrace", "kvm"];
    let mut made = Gvisor::default();
    for (_, value) in pairs("gvisor", &["platform"], rest)? {
        if !PLATFORMS.contains(&value) {
            return Err(one_of("platform", value, &PLATFORMS));
        }
        made.platform = Some(value.to_owned());
    }
    Ok(made)
}

fn ssh(rest: Option<&str>) -> Result<Ssh, String> {
    let host = rest.unwrap_or_default();
    // ssh(1) would take the first for an option, and no host's name has a space.
    if host.is_empty() || host.starts_with('-') || host.contains(char::is_whitespace) {
        return Err("after ssh: stands a host as ssh(1) takes it, such as ssh:user@machine".to_owned());
    }
    Ok(Ssh { host: host.to_owned() })
}

fn exec(rest: Option<&str>) -> Result<Exec, String> {
    let prefix = rest.unwrap_or_default();
    let words = tollgate_os::words::split(prefix).map_err(|why| why.to_string())?;
    if words.first().is_none_or(String::is_empty) {
        return Err("after exec: stands a command that runs a program, such as exec:'nice -n 5'".to_owned());
    }
    Ok(Exec { prefix: prefix.to_owned(), words })
}

/// As it was given, but that the keys of a container stand in their order. It is read back as the same.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, settings) = match self {
            Self::Host(host) => ("host", host.settings().iter().map(ToString::to_string).collect()),
            Self::Container(Container { runtime, seccomp }) => {
                let runtime = runtime.map(|runtime| format!("runtime={runtime}"));
                let seccomp = (*seccomp != Seccomp::Default).then(|| format!("seccomp={seccomp}"));
                ("container", [runtime, seccomp].into_iter().flatten().collect())
            }
            Self::Gvisor(Gvisor { platform }) => {
                ("gvisor", platform.iter().map(|platform| format!("platform={platform}")).collect())
            }
            Self::Vm(vm) => ("vm", vm.settings()),
            Self::Ssh(Ssh { host }) => ("ssh", vec![host.clone()]),
            Self::Exec(Exec { prefix, .. }) => ("exec", vec![prefix.clone()]),
        };
        f.write_str(kind)?;
        if settings.is_empty() { Ok(()) } else { write!(f, ":{}", settings.join(",")) }
    }
}

#[cfg(test)]
mod tests;
