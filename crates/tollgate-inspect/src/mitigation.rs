//! The kernel's mitigations. Source: Documentation/admin-guide/hw-vuln, `/sys/devices/system/cpu/vulnerabilities`.

use tollgate_model::Fact;

use crate::machine::{Answer, Machine, fact, unknown};

const DIRECTORY: &str = "/sys/devices/system/cpu/vulnerabilities";

pub(crate) fn named(machine: &Machine, vulnerability: &str) -> Answer<String> {
    machine.line(&format!("{DIRECTORY}/{vulnerability}"))
}

/// All that the kernel lists, as `mitigation.NAME`.
pub(crate) fn all(machine: &Machine) -> Vec<(String, Fact)> {
    let names = match machine.names(DIRECTORY) {
        Ok(names) => names.value,
        Err(why) => return vec![("mitigation".into(), unknown(why))],
    };
    let named = |name: String| (format!("mitigation.{name}"), fact(named(machine, &name)));
    names.into_iter().filter(|name| is_name(name)).map(named).collect()
}

/// The kernel's names have this form; other names in a captured tree do not become part of a fact's name.
fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(allowed)
}
