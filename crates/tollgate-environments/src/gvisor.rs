//! gVisor: this program as an agent behind a kernel of its own, `runsc`, which is called as a runtime of containers.

use std::path::PathBuf;

use crate::agent::Agent;
use crate::commands;
use crate::container::{self, Bundle, Order, Paths, Place, Words, agent_file};
use crate::error::{EnvironmentError, unusable};
use crate::guardian::Guardian;
use crate::prepared::{Prepared, Undo};
use crate::spec::{Gvisor, Seccomp};

/// A variable that names its program, where PATH does not have it.
pub(crate) const RUNSC: &str = "TOLLGATE_RUNSC";

/// Its ways to catch what a program does, the default first.
pub(crate) const PLATFORMS: [&str; 3] = ["systrap", "ptrace", "kvm"];

/// Prepares a sandbox.
///
/// # Errors
/// A sentence: it is not installed.
pub(crate) fn prepare(spec: &Gvisor, agent: &Agent, paths: Paths<'_>) -> Result<Prepared, EnvironmentError> {
    let program = agent_file(agent, paths.private())?;
    let order = Order::of(&program, agent.arguments(), paths, "gvisor", &Seccomp::None);
    of_order(spec, &order).map_err(|why| unusable!("gvisor: {why}"))
}

/// Prepares a sandbox with a shell in the program's place, in the private directory of [`prepare`].
///
/// # Errors
/// As [`prepare`].
pub(crate) fn prepare_shell(
    spec: &Gvisor,
    agent: &Agent,
    paths: Paths<'_>,
) -> Result<Prepared, EnvironmentError> {
    let program = agent_file(agent, paths.private())?;
    let order = Order::of(&program, &[], paths, "gvisor-shell", &Seccomp::None).with_shell();
    of_order(spec, &order).map_err(|why| unusable!("gvisor: {why}"))
}

/// Has it run this program, for its help.
///
/// # Errors
/// The reason.
pub(crate) fn try_out(
    spec: &Gvisor,
    agent: &Agent,
    paths: Paths<'_>,
    guardian: &Guardian,
    stop: &dyn Fn() -> bool,
) -> Result<(), EnvironmentError> {
    let program = agent_file(agent, paths.private())?;
    let arguments = [container::TRIED.into()];
    let name = format!("gvisor-{}-tried", spec.platform.as_deref().unwrap_or("default"));
    let order = Order::of(&program, &arguments, paths, &name, &Seccomp::None);
    container::run(&of_order(spec, &order)?, guardian, stop)
}

/// Its version, as it says it itself: `runsc version release-20260101.0`.
pub(crate) fn version(stop: &dyn Fn() -> bool) -> Result<String, EnvironmentError> {
    commands::run(&find()?, &["--version"], stop)
}

/// Its program's file.
pub(crate) fn find() -> Result<PathBuf, EnvironmentError> {
    if let Some(named) = std::env::var_os(RUNSC).filter(|named| !named.is_empty()) {
        return match std::path::absolute(&named) {
            Ok(path) if path.is_file() => Ok(path),
            _ => Err(unusable!("{RUNSC} names {}, which is no file", named.display())),
        };
    }
    commands::find("runsc").ok_or_else(|| {
        unusable!("runsc is not installed (gvisor.dev/docs/user_guide/install; {RUNSC} names it elsewhere)")
    })
}

pub(crate) fn of_order(spec: &Gvisor, order: &Order<'_>) -> Result<Prepared, EnvironmentError> {
    let runsc = find()?;
    let bundle = Bundle::make(order)?;
    bundle.write(&container::config(order, &bundle, Place::Sandbox, None)?)?;
    let of_state = || {
        let mut words = Words::of(&runsc);
        words.option("--root", &bundle.state).add(["--network=none", "--ignore-cgroups"]);
        if !rustix::process::geteuid().is_root() {
            words.add(["--rootless"]);
        }
        words
    };
    let mut run = of_state();
    if let Some(platform) = &spec.platform {
        run.option("--platform", platform);
    }
    let command = run.add(["run", "--bundle"]).add([&bundle.path]).add([&order.id]).done();
    let undo = vec![
        // It keeps a network namespace mounted in its state.
        Undo::Unmount(order.private.join(&order.id)),
        Undo::Program(of_state().add(["delete", "--force", &order.id]).done()),
    ];
    Ok(Prepared { command, undo, ..Prepared::default() })
}
