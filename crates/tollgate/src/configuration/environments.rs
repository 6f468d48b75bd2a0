//! Environments by their names: `--in base` is `--in base=vm:…`.

use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use clap::{ArgMatches, Command};
use tollgate_environments::Spec;

use super::files::Origin;
use super::toml::{Entry, Value};
use crate::named::named;
use crate::say;

pub const ENVIRONMENTS: &str = "environments";
const IN: &str = "in";
/// Words other than the kinds that a reader of a command line takes for a kind.
const RESERVED: &str = "bare-metal bubblewrap bwrap chroot containerd crun docker emulator firecracker guest hyperv incus jail k8s kata kubectl \
    kubernetes kvm local localhost lxc lxd machine metal microvm mosh native nerdctl nspawn oc oci podman qemu remote runc runsc sandbox \
    sysbox systemd-nspawn tcg virtualbox vmware wsl xen";

#[derive(Debug, Clone)]
pub struct Named {
    pub name: String,
    pub environment: String,
    pub from: String,
    is_found: bool,
    /// The part of the meaning that a found file may not give.
    pub refused: Option<String>,
}

pub fn read(entry: Entry, from: String, origin: Origin) -> Result<Named, String> {
    let Entry { key: name, value, .. } = entry;
    let Value::Text(environment) = value else {
        return Err(format!("the environment {name} is text, such as \"vm:kernel=bzImage\""));
    };
    if named(&format!("{name}=host")).0 != name {
        return Err(format!("{name:?} is not a name for an environment: use 1 to 32 of A-Z a-z 0-9 - _ ."));
    }
    let word = name.to_ascii_lowercase();
    let is_kind = tollgate_environments::typed().iter().any(|(kind, _)| kind.trim_end_matches(':') == word);
    if is_kind || RESERVED.split_whitespace().any(|known| known == word) {
        return Err(format!(
            "{name} would be taken for a kind of environments; give it a name such as my-{name}"
        ));
    }
    let spec: Spec = environment.parse().map_err(|why| format!("the environment {name}: {why}"))?;
    let is_found = origin == Origin::Found;
    let refused = spec.outside().filter(|_| is_found);
    Ok(Named { name, environment, from, is_found, refused })
}

/// Lets the option `--in` of every verb take the names of environments: `base` is `base=vm:…`.
pub fn with_names(command: Command, environments: &[Named]) -> Command {
    if environments.is_empty() {
        return command;
    }
    let command = command.mut_subcommands(|verb| with_names(verb, environments));
    command.mut_args(|option| match option.get_long() {
        Some(IN) => {
            let names = environments.to_vec();
            option.value_parser(NonEmptyStringValueParser::new().try_map(move |given| meaning(&names, given)))
        }
        _ => option,
    })
}

/// `base` is `base=vm:…`, and `old=base` is `old=vm:…`.
fn meaning(environments: &[Named], given: String) -> Result<String, String> {
    let (label, name) = named(&given);
    match environments.iter().find(|one| one.name == name) {
        Some(Named { refused: Some(part), environment, from, .. }) => Err(format!(
            "{from} says {environment}, but a file that was found, not named, may not set {part}; `--config FILE` takes everything from a file"
        )),
        Some(one) => Ok(format!("{label}={}", one.environment)),
        None => Ok(given),
    }
}

pub fn say_used(command: &Command, matches: &ArgMatches, environments: &[Named]) {
    let (mut command, mut matches) = (command, matches);
    while let Some((verb, inner)) = matches.subcommand()
        && let Some(found) = command.find_subcommand(verb)
    {
        (command, matches) = (found, inner);
    }
    let options = command.get_arguments().filter(|option| option.get_long() == Some(IN));
    let given = options.filter_map(|option| matches.get_raw(option.get_id().as_str())).flatten();
    let given: Vec<&str> = given.filter_map(|given| given.to_str()).map(|given| named(given).1).collect();
    for one in environments.iter().filter(|one| one.is_found && given.contains(&one.name.as_str())) {
        say::say(&format!("{} is {}, by {}", one.name, one.environment, one.from));
    }
}
