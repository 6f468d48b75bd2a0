//! The state of a fact as a phrase, if that state makes a crossing slow. The affected crossings are declared with the fact
//! ([`tollgate_inspect::effect`]) and with the benchmark, by type.

use tollgate_inspect::is_named;
use tollgate_model::{Case, Fact, FactValue, Facts};

use crate::causes;

/// A fact in a state that makes something slow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Burden {
    /// The fact's name.
    pub fact: String,
    /// Its state, as a phrase.
    pub state: String,
}

/// The burdens that reach a case, the heaviest first.
pub fn of_case(facts: &Facts, case: &Case) -> Vec<Burden> {
    let reaches =
        |name: &str| tollgate_inspect::effect(name).is_some_and(|effect| causes::reaches(effect, case));
    among(facts, reaches)
}

/// All burdens, the heaviest first.
pub fn all(facts: &Facts) -> Vec<Burden> {
    among(facts, |_| true)
}

/// The mitigations that are on, the heaviest first.
pub fn mitigations(facts: &Facts) -> Vec<String> {
    let mut on: Vec<String> =
        among(facts, |name| name.starts_with("mitigation.")).into_iter().map(|burden| burden.state).collect();
    let is_light = |name: &str, words: &str| text(facts, name).is_some_and(|text| text.contains(words));
    on.extend(is_light("mitigation.spectre_v2", "Enhanced").then(|| "eIBRS".to_owned()));
    on.extend(is_light("mitigation.spectre_v1", "swapgs").then(|| "swapgs fences".to_owned()));
    on
}

fn text<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.get(name)?.value()?.as_text()
}

fn among(facts: &Facts, is_meant: impl Fn(&str) -> bool) -> Vec<Burden> {
    let known = facts.iter().filter_map(|(name, fact)| Some((name, Fact::value(fact)?)));
    let mut burdens: Vec<(u8, Burden)> = known
        .filter(|(name, _)| is_meant(name))
        .filter_map(|(name, value)| {
            let (weight, state) = state(name, value)?;
            Some((weight, Burden { fact: name.clone(), state }))
        })
        .collect();
    burdens.sort_by(|(one, a), (other, b)| one.cmp(other).then_with(|| a.state.cmp(&b.state)));
    // Several vulnerabilities share a mitigation, several marks a layer.
    burdens.dedup_by(|(_, later), (_, earlier)| later.state == earlier.state);
    burdens.into_iter().map(|(_, burden)| burden).collect()
}

/// The weight, 0 for the heaviest; `None` if the state makes nothing slow.
fn state(name: &str, value: &FactValue) -> Option<(u8, String)> {
    let text = value.as_text().unwrap_or_default();
    let (has, flag) = (|words: &str| text.contains(words), value.as_flag());
    let some = |weight: u8, is_so: bool, words: &str| is_so.then(|| (weight, words.to_owned()));
    let items = match value {
        FactValue::List(items) => items.as_slice(),
        _ => &[],
    };
    let number = value.as_f64().unwrap_or_default();
    match name {
        "sandbox.kernel" => Some((0, format!("{text} in place of Linux"))),
        "hypervisor.nesting" => some(1, !items.is_empty(), "nested hypervisor"),
        "process.tracer" => some(1, number > 0.0, "a tracer is attached"),
        "mitigation.pti" => some(2, flag == Some(true), "PTI"),
        "hypervisor.cpuid" => some(3, has("slow exit"), "slow VM exits"),
        "hypervisor.layers" if !items.is_empty() => {
            let named: Vec<&str> = items.iter().map(String::as_str).filter(|item| is_named(item)).collect();
            Some((4, if named.is_empty() { "hypervisor".to_owned() } else { named.join("/") }))
        }
        "seccomp.filters" if number == 1.0 => Some((3, "a seccomp filter".to_owned())),
        "seccomp.filters" if number > 1.0 => Some((3, format!("{number} seccomp filters"))),
        "mitigation.retbleed" => some(3, has("untrained"), "untrained returns")
            .or_else(|| some(3, text == "Mitigation: IBRS", "IBRS at entry")),
        "mitigation.spectre_v2" => some(4, has("Retpoline"), "retpolines")
            .or_else(|| some(3, text.starts_with("Mitigation: IBRS"), "IBRS at entry"))
            .or_else(|| some(3, has(", BHB"), "BHB at entry")),
        "cpu.feature.atomics" => some(4, flag == Some(false), "no LSE"),
        "mitigation.spec_rstack_overflow" => some(4, has("afe RET"), "safe returns")
            .or_else(|| some(2, has("IBPB") && !has("VMEXIT"), "IBPB at entry")),
        "mitigation.mds"
        | "mitigation.tsx_async_abort"
        | "mitigation.mmio_stale_data"
        | "mitigation.reg_file_data_sampling"
        | "mitigation.tsa" => some(3, has("Clear CPU buffers"), "VERW at exit"),
        "mitigation.indirect_target_selection" => some(5, has("Mitigation: Aligned"), "aligned thunks"),
        "vdso.present" => some(2, flag == Some(false), "no vDSO"),
        "clocksource.in_user_mode" => some(2, flag == Some(false), "clock source not in user mode"),
        "kernel.tracer" => some(2, !text.is_empty() && text != "nop", "ftrace is on"),
        "kernel.traced_system_calls" => some(2, flag == Some(true), "system calls are traced"),
        "kernel.trace_events" => some(4, !items.is_empty(), "kernel events are traced"),
        "kernel.kprobes" => some(4, number > 0.0, "kprobes"),
        "kernel.live_patches" => some(5, !items.is_empty(), "live patches"),
        "kernel.sched_ext" => some(4, text == "enabled", "a scheduler in BPF"),
        "audit.rules" => some(2, !items.is_empty(), "audit rules"),
        "audit.enabled" => some(3, number > 0.0, "auditing"),
        "bpf.system_calls" => some(2, !items.is_empty(), "BPF on system calls"),
        "bpf.kernel" => some(4, !items.is_empty(), "BPF in the kernel"),
        "bpf.scheduler" => some(4, !items.is_empty(), "BPF in the scheduler"),
        "bpf.security" => some(4, !items.is_empty(), "BPF on security hooks"),
        "bpf.network" => some(5, !items.is_empty(), "BPF on sockets"),
        "cgroup.depth" => some(6, number >= 3.0, "nested control groups"),
        "kernel.lsm" => some(6, items.iter().any(|module| module != "capability"), "security modules"),
        "memory.thp" => some(6, text == "madvise", "huge pages only on madvise")
            .or_else(|| some(6, text == "never", "huge pages off")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(all: &[(&str, Fact)]) -> Facts {
        all.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())).collect()
    }

    #[test]
    fn a_burden_reaches_what_crosses_its_boundary() {
        let facts = facts(&[
            ("mitigation.pti", Fact::known(true, "test")),
            ("hypervisor.nesting", Fact::known(vec!["a mark".to_owned()], "test")),
            ("memory.thp", Fact::known("madvise", "test")),
        ]);
        let states = |benchmark: &str| -> Vec<String> {
            of_case(&facts, &Case::plain(benchmark)).into_iter().map(|burden| burden.state).collect()
        };
        assert_eq!(states("entry/syscall"), ["PTI"]);
        assert_eq!(states("entry/int80"), ["nested hypervisor", "PTI"]);
        assert!(states("entry/call").is_empty());
    }

    #[test]
    fn mitigations_that_share_a_way_are_named_once_and_those_that_are_off_not() {
        let verw = || Fact::known("Mitigation: Clear CPU buffers; SMT disabled", "test");
        let facts = facts(&[
            ("mitigation.mds", verw()),
            ("mitigation.mmio_stale_data", verw()),
            ("mitigation.pti", Fact::known(false, "test")),
            ("mitigation.spectre_v2", Fact::known("Mitigation: Retpolines; IBPB: conditional", "test")),
            ("mitigation.srbds", Fact::known("Not affected", "test")),
        ]);
        assert_eq!(mitigations(&facts), ["VERW at exit", "retpolines"]);
        let of =
            |text: &str| mitigations(&self::facts(&[("mitigation.spectre_v2", Fact::known(text, "test"))]));
        assert_eq!(of("Mitigation: CSV2, BHB"), ["BHB at entry"]);
        assert!(of("Mitigation: CSV2, but not BHB").is_empty());
    }
}
