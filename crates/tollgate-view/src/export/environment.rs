//! The key facts, which are on each line, since fleets are usually grouped by them. All others are in the file of the
//! environment.

use serde::{Deserialize, Serialize};
use tollgate_model::{Fact, FactValue, Facts};

use super::short;

/// The fact with the user's name for the machine.
pub const MACHINE: &str = "run.machine";

/// Facts by which fleets are grouped. `None` is unknown; the run document has the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFacts {
    /// `kernel.release`.
    pub kernel: Option<String>,
    /// `cpu.architecture`.
    pub architecture: Option<String>,
    /// `cpu.vendor`.
    pub cpu_vendor: Option<String>,
    /// `cpu.model`.
    pub cpu: Option<String>,
    /// The microarchitecture: `cpu.family`, `cpu.model_number` and `cpu.stepping` in hexadecimal, as Intel names its microcode files:
    /// `06-6a-06`.
    pub cpu_signature: Option<String>,
    /// `cpu.microcode`.
    pub microcode: Option<String>,
    /// `cpu.online`.
    pub cpus: Option<i64>,
    /// `cpu.smt_active`.
    pub smt: Option<bool>,
    /// `hypervisor.layers`, the outermost last; empty if there are none.
    pub hypervisor: Option<String>,
    /// `container.layers`; empty if there are none.
    pub container: Option<String>,
    /// `sandbox.kernel`.
    pub sandbox: Option<String>,
    /// `clocksource.current`.
    pub clocksource: Option<String>,
    /// `power.governor`.
    pub governor: Option<String>,
    /// `memory.thp`.
    pub thp: Option<String>,
    /// `seccomp.filters`.
    pub seccomp_filters: Option<i64>,
    /// `mitigation.pti`.
    pub pti: Option<bool>,
    /// The vulnerabilities that `mitigation.*` reports as mitigated, by name.
    pub mitigated: Option<String>,
    /// The vulnerabilities that `mitigation.*` reports as not mitigated, by name.
    pub vulnerable: Option<String>,
}

impl KeyFacts {
    /// The facts of a run.
    pub fn of(facts: &Facts) -> Self {
        let text = |name| known(facts, name).map(|value| short(&value.to_string()));
        let layers = |name| match known(facts, name)? {
            FactValue::List(layers) => Some(short(&layers.join(", "))),
            other => Some(short(&other.to_string())),
        };
        let number = |name| match known(facts, name)? {
            FactValue::Integer(number) => Some(*number),
            _ => None,
        };
        let flag = |name| known(facts, name)?.as_flag();
        Self {
            kernel: text("kernel.release"),
            architecture: text("cpu.architecture"),
            cpu_vendor: text("cpu.vendor"),
            cpu: text("cpu.model"),
            cpu_signature: signature(
                number("cpu.family"),
                number("cpu.model_number"),
                number("cpu.stepping"),
            ),
            microcode: text("cpu.microcode"),
            cpus: number("cpu.online"),
            smt: flag("cpu.smt_active"),
            hypervisor: layers("hypervisor.layers"),
            container: layers("container.layers"),
            sandbox: text("sandbox.kernel"),
            clocksource: text("clocksource.current"),
            governor: text("power.governor"),
            thp: text("memory.thp"),
            seccomp_filters: number("seccomp.filters"),
            pti: flag("mitigation.pti"),
            mitigated: vulnerabilities(facts, "Mitigation"),
            vulnerable: vulnerabilities(facts, "Vulnerable"),
        }
    }
}

/// The user's name for the machine.
pub fn machine(facts: &Facts) -> Option<String> {
    known(facts, MACHINE)?.as_text().map(short)
}

fn known<'a>(facts: &'a Facts, name: &str) -> Option<&'a FactValue> {
    facts.get(name).and_then(Fact::value)
}

fn signature(family: Option<i64>, model: Option<i64>, stepping: Option<i64>) -> Option<String> {
    Some(format!("{:02x}-{:02x}-{:02x}", family?, model?, stepping?))
}

/// The vulnerabilities whose state begins with `begins` (Documentation/admin-guide/hw-vuln). `None` if the kernel reports no
/// state.
fn vulnerabilities(facts: &Facts, begins: &str) -> Option<String> {
    let named = || {
        facts
            .iter()
            .filter_map(|(name, fact)| Some((name.strip_prefix("mitigation.")?, fact.value()?.as_text()?)))
    };
    let names: Vec<&str> =
        named().filter(|(_, says)| says.starts_with(begins)).map(|(name, _)| name).collect();
    named().next().map(|_| short(&names.join(",")))
}
