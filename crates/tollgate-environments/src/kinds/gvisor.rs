//! `gvisor[:platform=NAME]`: this program as an agent on gVisor's own kernel. `runsc` is called as a container runtime.

use std::path::{Path, PathBuf};

use tollgate_model::Environment;
use tollgate_model::text::listed;

use super::trial::{Candidate, Tools, until};
use super::{Description, EnvironmentKind, Stop};
use crate::agent::Agent;
use crate::cleanup::Cleanup;
use crate::commands;
use crate::container::{self, Bundle, Order, Paths, Separation, WORK, Words, agent_file};
use crate::error::{EnvironmentError, unusable};
use crate::making::Making;
use crate::pairs::{Changes, Key, one_of, pairs};
use crate::prepared::{Prepared, Undo};
use crate::ready::{Command, Ready};
use crate::seccomp::Seccomp;
use crate::shell;

/// Variable that names the executable if it is not in PATH.
const RUNSC: &str = "TOLLGATE_RUNSC";

/// Ways to intercept a program's system calls, the default first.
const PLATFORMS: [&str; 3] = ["systrap", "ptrace", KVM];
const KVM: &str = "kvm";

const KVM_DEVICE: &str = "/dev/kvm";

const KEYS: &[Key] = &[Key::one_of("platform", &PLATFORMS).changes(Changes::Facts(&["sandbox."]))];

/// Times also depend on where the sandbox's executable is loaded in memory, so it is started twice.
static DESCRIPTION: Description = Description {
    starts: 2,
    seen_as: Some(Environment::Sandbox),
    has_kernel: true,
    ..Description::new("gvisor", KEYS)
};

/// Its platform; `None` for the sandbox's own default.
#[derive(Debug, Default)]
pub(crate) struct Gvisor(Option<String>);

impl EnvironmentKind for Gvisor {
    fn description() -> &'static Description {
        &DESCRIPTION
    }

    fn read(rest: Option<&str>) -> Result<Self, String> {
        let mut made = Self::default();
        for (key, value) in pairs(DESCRIPTION.name, KEYS, rest)? {
            if !PLATFORMS.contains(&value) {
                return Err(one_of(key, value, &PLATFORMS));
            }
            made.0 = Some(value.to_owned());
        }
        Ok(made)
    }

    fn candidates() -> Vec<Candidate> {
        vec![Candidate::named(DESCRIPTION.form(), survey)]
    }

    fn settings(&self) -> Vec<String> {
        self.0.iter().map(|platform| format!("platform={platform}")).collect()
    }

    fn prepare(&self, making: &mut Making, _: Stop<'_>) -> Result<Box<dyn Ready>, EnvironmentError> {
        making.make_own_directory()?;
        making.make_directory_for_files();
        let agent = Agent::with(&["--dir".into(), WORK.into()])?;
        let paths = making.paths()?;
        let program = agent_file(&agent, paths.private())?;
        let order = Order::new(&program, agent.arguments(), paths, DESCRIPTION.name, &Seccomp::None);
        let prepared = of_order(self, &order).map_err(named)?;
        making.promise(&prepared.undo)?;
        Ok(Box::new(Command { prepared, is_bound: false }))
    }

    fn shell(&self, _: Option<&str>, making: &Making) -> Result<Prepared, EnvironmentError> {
        shell::expect_here()?;
        let paths = making.paths()?;
        let program = agent_file(&Agent::with(&[])?, paths.private())?;
        let order = Order::new(&program, &[], paths, "gvisor-shell", &Seccomp::None).with_shell();
        of_order(self, &order).map_err(named)
    }

    fn files(&self, _: Option<&str>) -> Vec<PathBuf> {
        find().into_iter().collect()
    }
}

fn named(why: EnvironmentError) -> EnvironmentError {
    unusable!("{}: {why}", DESCRIPTION.name)
}

fn survey(tools: &Tools) -> Result<String, EnvironmentError> {
    let version = version(&until())?;
    let found = PLATFORMS.map(|platform| {
        if platform == KVM && !Path::new(KVM_DEVICE).exists() {
            return Err(unusable!("there is no {KVM_DEVICE}"));
        }
        let spec = Gvisor(Some(platform.to_owned()));
        tools.in_private(|agent, paths, cleanup| try_out(&spec, agent, paths, cleanup, &until()))
    });
    let (works, fails): (Vec<_>, Vec<_>) =
        PLATFORMS.into_iter().zip(found).partition(|(_, found)| found.is_ok());
    let reasons: Vec<String> = fails
        .into_iter()
        .filter_map(|(platform, found)| {
            Some(format!("{platform} does not start: {}", cause(&found.err()?.to_string())))
        })
        .collect();
    let works: Vec<&str> = works.into_iter().map(|(platform, _)| platform).collect();
    match (works.as_slice(), reasons.as_slice()) {
        ([], reasons) => Err(unusable!("{version}, but no platform starts ({})", reasons.join("; "))),
        (works, []) => Ok(format!("{version}; platforms {}", listed(works))),
        (works, reasons) => Ok(format!("{version}; platforms {} ({})", listed(works), reasons.join("; "))),
    }
}

/// The last two parts of a Go program's error, which ends with its cause.
fn cause(said: &str) -> &str {
    said.rmatch_indices(": ").nth(1).map_or(said, |(at, divider)| &said[at + divider.len()..])
}

pub(crate) fn try_out(
    spec: &Gvisor,
    agent: &Agent,
    paths: Paths<'_>,
    cleanup: &Cleanup,
    stop: &dyn Fn() -> bool,
) -> Result<(), EnvironmentError> {
    let program = agent_file(agent, paths.private())?;
    let arguments = [container::TRIED.into()];
    let name = format!("gvisor-{}-tried", spec.0.as_deref().unwrap_or("default"));
    let order = Order::new(&program, &arguments, paths, &name, &Seccomp::None);
    container::run(&of_order(spec, &order)?, cleanup, stop)
}

fn version(stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
    commands::run(&find()?, &["--version"], stop)
}

fn find() -> Result<PathBuf, EnvironmentError> {
    if let Some(named) = std::env::var_os(RUNSC).filter(|named| !named.is_empty()) {
        return match std::path::absolute(&named) {
            Ok(path) if path.is_file() => Ok(path),
            _ => Err(unusable!("{RUNSC} names {}, which is not a file", named.display())),
        };
    }
    commands::find("runsc").ok_or_else(|| {
        unusable!("runsc is not installed (gvisor.dev/docs/user_guide/install; {RUNSC} names it elsewhere)")
    })
}

pub(crate) fn of_order(spec: &Gvisor, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
    let runsc = find()?;
    let bundle = Bundle::make(order)?;
    bundle.write(&container::config(order, &bundle, Separation::Sandbox, None)?)?;
    let of_state = || {
        let mut words = Words::new(&runsc);
        words.option("--root", &bundle.state).add(["--network=none", "--ignore-cgroups"]);
        if !rustix::process::geteuid().is_root() {
            words.add(["--rootless"]);
        }
        words
    };
    let mut run = of_state();
    if let Some(platform) = &spec.0 {
        run.option("--platform", platform);
    }
    let command = run.add(["run", "--bundle"]).add([&bundle.path]).add([&order.id]).done();
    let undo = vec![
        // It keeps a network namespace mounted in its state directory.
        Undo::Unmount(order.private.join(&order.id)),
        Undo::Program(of_state().add(["delete", "--force", &order.id]).done()),
    ];
    Ok(Prepared { command, undo, ..Prepared::default() })
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn the_cause_is_at_the_end() {
        assert_eq!(
            cause("running: creating: waiting for sandbox to start: EOF"),
            "waiting for sandbox to start: EOF"
        );
        assert_eq!(cause("creating: EOF"), "creating: EOF");
        assert_eq!(cause("EOF"), "EOF");
    }
}
