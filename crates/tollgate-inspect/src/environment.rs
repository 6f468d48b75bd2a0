//! What the facts amount to, in one word.

use tollgate_model::{Environment, FactValue, Facts};

/// The innermost layer that the facts tell of: a sandbox, else a container, else a virtual machine. Where
/// none is told of, the host: as far as anybody can tell.
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
