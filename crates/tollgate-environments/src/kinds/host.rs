//! `host[:key=value,…]`: this machine, with settings of the measured processes.
//!
//! `settings` parses the keys; `apply` is how an agent applies them to itself.

use std::ffi::OsString;
use std::path::Path;

use tollgate_model::Environment;

use super::trial::Candidate;
use super::{Description, EnvironmentKind, Spec, Stop};
use crate::agent::Agent;
use crate::error::{EnvironmentError, unusable};
use crate::making::Making;
use crate::pairs::pairs;
use crate::prepared::Prepared;
use crate::ready::{Command, Ready};
use crate::shell::{self, SHELL};

mod apply;
mod settings;

use settings::{KEYS, Setting, setting};

static DESCRIPTION: Description =
    Description { seen_as: Some(Environment::Host), ..Description::new("host", KEYS) };

/// Settings in the order in which they were given. Only `env.` may occur more than once.
#[derive(Debug, Clone, Default)]
pub(super) struct Host(Vec<Setting>);

impl EnvironmentKind for Host {
    fn description() -> &'static Description {
        &DESCRIPTION
    }

    fn read(rest: Option<&str>) -> Result<Self, String> {
        let pairs = pairs(DESCRIPTION.name, KEYS, rest)?;
        pairs.into_iter().map(|(key, value)| setting(key, value)).collect::<Result<_, _>>().map(Self)
    }

    fn candidates() -> Vec<Candidate> {
        vec![Candidate::named(DESCRIPTION.form(), |_| Ok(kernel()))]
    }

    fn settings(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }

    fn prepare(&self, _: &mut Making, _: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError> {
        apply::check(&self.0)?;
        let mut arguments: Vec<OsString> = Vec::new();
        if !self.0.is_empty() {
            arguments.extend(["--as".into(), self.name().into()]);
        }
        if let Some(directory) = self.directory() {
            arguments.extend(["--dir".into(), directory.into()]);
        }
        let agent = Agent::with(&arguments)?;
        let command = [&[agent.reference()], agent.arguments()].concat();
        let variables = self.variables().map(|(name, value)| (name.into(), value.into())).collect();
        let prepared = Prepared { runtime: None, command, variables, undo: Vec::new() };
        Ok(Box::new(Command { prepared, is_bound: true }))
    }

    fn shell(&self, _: Option<&str>, _: &Making) -> Result<Prepared, EnvironmentError> {
        shell::expect_here()?;
        if !self.0.is_empty() {
            return Err(unusable!("the agent applies the settings of its keys, but a shell does not"));
        }
        Ok(Prepared { command: SHELL.map(Into::into).to_vec(), ..Prepared::default() })
    }

    fn filter(&self, _: Option<&str>) -> Option<String> {
        self.0.iter().find_map(|setting| match setting {
            Setting::Seccomp(seccomp) => seccomp.whose(None),
            _ => None,
        })
    }

    fn cpu(&self) -> Option<usize> {
        self.0.iter().find_map(|setting| match setting {
            Setting::Cpu(cpu) => Some(*cpu),
            _ => None,
        })
    }

    fn apply(&self) -> Option<Result<(), EnvironmentError>> {
        Some(apply::apply(&self.0))
    }

    fn in_directory(&self, directory: &Path) -> Option<String> {
        let joint = if self.0.is_empty() { ':' } else { ',' };
        let name = || format!("{}{joint}dir={}", self.name(), directory.display());
        self.directory().is_none().then(name)
    }
}

impl Host {
    fn name(&self) -> String {
        Spec::new(self.clone()).to_string()
    }

    fn directory(&self) -> Option<&Path> {
        self.0.iter().find_map(|setting| match setting {
            Setting::Dir(dir) => Some(dir.as_path()),
            _ => None,
        })
    }

    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|setting| match setting {
            Setting::Variable(name, value) => Some((name.as_str(), value.as_str())),
            _ => None,
        })
    }
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found() {
        let host = Host::read(Some("env.A=1,cpu=3,env.B=2,dir=files")).unwrap();
        assert_eq!((host.cpu(), host.directory()), (Some(3), Some(Path::new("files"))));
        assert_eq!(host.variables().collect::<Vec<_>>(), [("A", "1"), ("B", "2")]);
        let other = Path::new("/x");
        assert_eq!(host.in_directory(other), None);
        let names = ["host", "host:nice=5"].map(|name| name.parse::<Spec>().unwrap().in_directory(other));
        assert_eq!(
            names.map(|name| name.unwrap().unwrap().to_string()),
            ["host:dir=/x", "host:nice=5,dir=/x"]
        );
    }
}
