//! `container[:runtime=NAME,seccomp=FILTER]`: a container, made by one of several runtimes.

use std::path::PathBuf;

use tollgate_model::Environment;

use super::trial::{Candidate, Tools, until};
use super::{Description, EnvironmentKind, Spec, Stop};
use crate::agent::Agent;
use crate::container::{self, Container, Runtime, WORK};
use crate::error::{EnvironmentError, unusable};
use crate::making::Making;
use crate::pairs::{Key, pairs};
use crate::prepared::Prepared;
use crate::ready::{Command, Ready};
use crate::seccomp::Seccomp;
use crate::shell;

const KEYS: &[Key] = &[Key::one_of("runtime", Runtime::WORDS), Seccomp::KEY_OF_CONTAINERS];

static DESCRIPTION: Description =
    Description { seen_as: Some(Environment::Container), ..Description::new("container", KEYS) };

impl EnvironmentKind for Container {
    fn description() -> &'static Description {
        &DESCRIPTION
    }

    fn read(rest: Option<&str>) -> Result<Self, String> {
        let mut made = Self::default();
        for (key, value) in pairs(DESCRIPTION.name, KEYS, rest)? {
            match key {
                "runtime" => made.runtime = Some(Runtime::parse(key, value)?),
                _ => made.seccomp = Seccomp::read(value)?,
            }
        }
        Ok(made)
    }

    fn candidates() -> Vec<Candidate> {
        let of = |runtime| {
            let spec = Spec::new(Self { runtime: Some(runtime), ..Self::default() });
            Candidate::named(spec.to_string(), move |tools| try_out(runtime, tools))
        };
        Runtime::ALL.map(of).into()
    }

    fn settings(&self) -> Vec<String> {
        let runtime = self.runtime.map(|runtime| format!("runtime={runtime}"));
        let seccomp = (self.seccomp != Seccomp::Default).then(|| format!("seccomp={}", self.seccomp));
        runtime.into_iter().chain(seccomp).collect()
    }

    fn prepare(&self, making: &mut Making, stop: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError> {
        making.make_own_directory()?;
        making.make_directory_for_files();
        let agent = Agent::with(&["--dir".into(), WORK.into()])?;
        let paths = making.paths()?;
        let prepared = container::prepare(self, &agent, paths, &making.cleanup, stop)?;
        making.promise(&prepared.undo)?;
        Ok(Box::new(Command { prepared, is_bound: false }))
    }

    fn shell(&self, runtime: Option<&str>, making: &Making) -> Result<Prepared, EnvironmentError> {
        shell::expect_here()?;
        let runtime = Runtime::ALL.into_iter().find(|one| Some(one.name()) == runtime);
        let runtime = runtime.ok_or_else(|| unusable!("container: its runtime is not known"))?;
        container::prepare_shell(runtime, &self.seccomp, &Agent::with(&[])?, making.paths()?)
    }

    fn files(&self, runtime: Option<&str>) -> Vec<PathBuf> {
        let runtime = Runtime::ALL.into_iter().find(|one| Some(one.name()) == runtime).or(self.runtime);
        runtime.and_then(|runtime| runtime.find().ok()).into_iter().collect()
    }

    fn filter(&self, runtime: Option<&str>) -> Option<String> {
        let with_own = [Runtime::Podman, Runtime::Docker, Runtime::Nspawn];
        self.seccomp.whose(runtime.filter(|name| with_own.iter().any(|one| one.name() == *name)))
    }

    fn hidden(&self, runtime: Option<&str>) -> Option<&'static str> {
        (runtime == Some(Runtime::Docker.name())).then_some("docker's daemon starts its processes")
    }
}

fn try_out(runtime: Runtime, tools: &Tools) -> Result<String, EnvironmentError> {
    let stop = until();
    runtime.find()?;
    tools.in_private(|agent, paths, cleanup| {
        let version = runtime.version(paths.private(), &stop)?;
        container::try_out(runtime, agent, paths, cleanup, &stop)?;
        Ok(version)
    })
}
