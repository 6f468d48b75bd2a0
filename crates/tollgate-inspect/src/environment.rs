//! The environment that the facts show, in one word.

use tollgate_model::{Environment, FactValue, Facts};

use crate::{Machine, registry};

/// Reads only the facts that identify the environment, from a hundredth of all files.
pub fn read_environment(machine: &Machine) -> Facts {
    const NAMES: [&str; 4] =
        ["sandbox.kernel", "container.layers", "hypervisor.layers", "hypervisor.signatures"];
    NAMES.into_iter().filter_map(registry::spec).flat_map(|spec| spec.read(machine)).collect()
}

/// Returns the innermost layer that left a mark: a sandbox, else a container, else a virtual machine, else the host.
pub fn environment(facts: &Facts) -> Environment {
    let value = |name: &str| facts.get(name).and_then(tollgate_model::Fact::value);
    let has_layers = |name: &str| matches!(value(name), Some(FactValue::List(layers)) if !layers.is_empty());
    if value("sandbox.kernel").is_some() {
        Environment::Sandbox
    } else if has_layers("container.layers") {
        Environment::Container
    } else if has_layers("hypervisor.layers") {
        Environment::Vm
    } else {
        Environment::Host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_few_facts_say_the_same_as_all() {
        let machine = Machine::here();
        let (few, all) = (read_environment(&machine), crate::read_facts(&machine));
        // The signatures are leaves of CPUID.
        assert_eq!(few.len(), if machine.is_arm64() { 3 } else { 4 });
        assert_eq!(environment(&few), environment(&all));
    }
}
