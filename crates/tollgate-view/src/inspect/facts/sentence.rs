//! The environment, in a paragraph made of facts.

use tollgate_model::{Fact, FactValue, Facts};
use tollgate_output::figures;
use tollgate_output::table::paragraph;

use crate::facts;

/// The paragraph, wrapped.
pub fn sentence(facts: &Facts, width: usize) -> String {
    let state = [processors(facts), state(facts), clocks(facts)];
    let state: Vec<String> = state.into_iter().flatten().collect();
    let mut text = format!("{} {}, {}", kernel(facts), machine(facts), container(facts));
    for part in state {
        text.push_str("; ");
        text.push_str(&part);
    }
    text.push('.');
    paragraph(&text, width, "")
}

fn kernel(facts: &Facts) -> String {
    let release = facts::text(facts, "kernel.release");
    match (facts::text(facts, "sandbox.kernel"), release) {
        (Some(sandbox), Some(release)) => format!("{sandbox}, which calls itself Linux {release},"),
        (Some(sandbox), None) => sandbox.to_owned(),
        (None, Some(release)) => format!("Linux {release}"),
        (None, None) => "A kernel without a name".to_owned(),
    }
}

fn machine(facts: &Facts) -> String {
    match list(facts, "hypervisor.layers") {
        None => "on a machine that may be physical or virtual".to_owned(),
        Some([]) => "on hardware, as far as known".to_owned(),
        Some(layers) => format!("in a virtual machine ({})", layers.join(", ")),
    }
}

fn container(facts: &Facts) -> String {
    match list(facts, "container.layers") {
        None => "whether in a container is unknown".to_owned(),
        Some([]) => "no sign of a container".to_owned(),
        Some(layers) => format!("in a container ({})", layers.join(", ")),
    }
}

fn processors(facts: &Facts) -> Option<String> {
    let allowed = facts::number(facts, "cpu.allowed")?;
    let online = facts::number(facts, "cpu.online").filter(|online| *online > allowed);
    let processors = figures::count(allowed as usize, "processor", "processors");
    let of = online.map(|online| format!(" of {online}")).unwrap_or_default();
    let model = facts::text(facts, "cpu.model").map(|model| format!(", {model}")).unwrap_or_default();
    Some(format!("{processors}{of} to run on{model}"))
}

fn state(facts: &Facts) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(pti) = facts::flag(facts, "mitigation.pti") {
        parts.push(format!("page-table isolation {}", if pti { "on" } else { "off" }));
    }
    if let Some(mode) = facts::text(facts, "seccomp.mode") {
        parts.push(match (mode, facts::number(facts, "seccomp.filters")) {
            ("disabled", _) => "no seccomp filter".to_owned(),
            ("filter", Some(filters)) => {
                figures::count(filters as usize, "seccomp filter", "seccomp filters")
            }
            (mode, _) => format!("seccomp {mode}"),
        });
    }
    if facts::number(facts, "process.tracer").is_some_and(|tracer| tracer > 0.0) {
        parts.push("traced by another process".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn clocks(facts: &Facts) -> Option<String> {
    let source = facts::text(facts, "clocksource.current")?;
    let how = match facts::flag(facts, "clocksource.in_user_mode") {
        Some(true) => ", in user mode",
        Some(false) => ", by system call",
        None => "",
    };
    Some(format!("time is read from {source}{how}"))
}

fn list<'a>(facts: &'a Facts, name: &str) -> Option<&'a [String]> {
    match facts.get(name).and_then(Fact::value) {
        Some(FactValue::List(items)) => Some(items),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_said() {
        let nothing = sentence(&Facts::new(), 200);
        assert_eq!(
            nothing,
            "A kernel without a name on a machine that may be physical or virtual, whether in a container is unknown.\n"
        );
        let known: Facts = [
            ("kernel.release", Fact::known("6.1", "test")),
            ("hypervisor.layers", Fact::known(vec!["KVM".to_owned()], "test")),
            ("container.layers", Fact::known(vec!["docker".to_owned()], "test")),
            ("cpu.allowed", Fact::known(1_i64, "test")),
            ("cpu.online", Fact::known(4_i64, "test")),
            ("mitigation.pti", Fact::known(true, "test")),
            ("seccomp.mode", Fact::known("filter", "test")),
            ("seccomp.filters", Fact::known(2_i64, "test")),
            ("clocksource.current", Fact::known("hpet", "test")),
            ("clocksource.in_user_mode", Fact::known(false, "test")),
        ]
        .map(|(name, fact)| (name.to_owned(), fact))
        .into();
        assert_eq!(
            sentence(&known, 300),
            "Linux 6.1 in a virtual machine (KVM), in a container (docker); 1 processor of 4 to run on; page-table \
             isolation on, 2 seccomp filters; time is read from hpet, by system call.\n"
        );
    }
}
