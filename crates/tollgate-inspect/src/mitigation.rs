//! The kernel's mitigations. Source: Documentation/admin-guide/hw-vuln, `/sys/devices/system/cpu/vulnerabilities`.

use tollgate_model::{Fact, Unknown};

use crate::kernel::parameter_of;
use crate::machine::{Answer, Machine, fact, found, unknown};
use crate::{processor, text::kernel_bool};

const DIRECTORY: &str = "/sys/devices/system/cpu/vulnerabilities";

pub(crate) fn named(machine: &Machine, vulnerability: &str) -> Answer<String> {
    machine.line(&format!("{DIRECTORY}/{vulnerability}"))
}

/// Whether page tables are switched: on x86-64 by the kernel's flags. On arm64 a kernel at a random address switches them on a
/// processor without E0PD too (`kaslr_requires_kpti` in arch/arm64/kernel/cpufeature.c), which no file shows.
pub(crate) fn pti(machine: &Machine) -> Answer<bool> {
    if !machine.is_arm64() {
        return processor::lists(machine, "pti");
    }
    let state = named(machine, "meltdown")?;
    match state.value.as_str() {
        "Mitigation: PTI" => found(true, state.source),
        "Vulnerable" => found(false, state.source),
        _ => match parameter_of(machine, "kpti") {
            Ok(value) => value.parse("yes or no", kernel_bool),
            Err(_) => Err(Unknown::Absent(format!(
                "{}: {:?} leaves open whether KASLR needs it",
                state.source, state.value
            ))),
        },
    }
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
