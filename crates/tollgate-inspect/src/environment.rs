//! The environment that the facts show, in one word.

use tollgate_model::{Environment, FactValue, Facts};

/// The innermost layer that the facts show: a sandbox, else a container, else a virtual machine, else the host. A
/// layer without a mark is not seen.
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
