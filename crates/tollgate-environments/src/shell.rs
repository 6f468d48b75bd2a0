//! Environments with a shell in the agent's place.

use std::path::Path;

use crate::agent::Agent;
use crate::container::{self, Paths, SHELL};
use crate::error::{EnvironmentError, unusable};
use crate::gvisor;
use crate::prepared::Prepared;
use crate::spec::{Host, Runtime, Spec};

/// Prepares one beside the environment with an agent, whose runtime and directories it has.
///
/// # Errors
/// It has no shell, or cannot be prepared.
pub(crate) fn prepare<'p>(
    spec: &Spec,
    runtime: Option<&str>,
    paths: &dyn Fn() -> Result<Paths<'p>, EnvironmentError>,
) -> Result<Prepared, EnvironmentError> {
    if !matches!(spec, Spec::Vm(_)) && !Path::new(SHELL[0]).exists() {
        return Err(unusable!("this machine has no {}, and the environment has its programs", SHELL[0]));
    }
    match spec {
        Spec::Host(host) => on_host(host),
        Spec::Container(container) => {
            let runtime = Runtime::ALL.into_iter().find(|one| Some(one.name()) == runtime);
            let runtime = runtime.ok_or_else(|| unusable!("{spec}: its runtime is not known"))?;
            container::prepare_shell(runtime, &container.seccomp, &Agent::with(&[])?, paths()?)
        }
        Spec::Gvisor(gvisor) => gvisor::prepare_shell(gvisor, &Agent::with(&[])?, paths()?),
        Spec::Vm(_) => {
            Err(unusable!("the guest has no shell: this program is all that its root file system has"))
        }
        Spec::Ssh(_) | Spec::Exec(_) => Err(unusable!("{spec}: a command starts its shell")),
    }
}

fn on_host(host: &Host) -> Result<Prepared, EnvironmentError> {
    if !host.settings().is_empty() {
        return Err(unusable!(
            "the settings of its keys are made by the agent, and a shell does not make them"
        ));
    }
    Ok(Prepared { command: SHELL.map(Into::into).to_vec(), ..Prepared::default() })
}
