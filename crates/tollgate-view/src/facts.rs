//! The names of the facts that the command itself reads.

use tollgate_engine::Architecture;
use tollgate_model::{Fact, FactValue, Facts};

/// The clock that timed the batches: `tsc`, or the kernel's; its source gives the reason.
pub const CLOCK: &str = "run.clock";
/// Ticks of that clock per second.
pub const CLOCK_HZ: &str = "run.clock_hz";
/// The processor that was measured.
pub const CPU: &str = "run.cpu";
/// The hardware events that were counted beside the time, or why none were.
pub const COUNTERS: &str = "run.counters";
/// Whether pinning to [`CPU`] works: `binds` or `does not bind`.
pub const AFFINITY: &str = "run.affinity";
/// Whether each measuring process was started anew.
pub const ISOLATION: &str = "run.isolation";

/// The runtime of a session's environment, such as `runc 1.1.5`.
pub const RUNTIME: &str = "run.runtime";
/// The origin of the filter of system calls that an environment's processes have.
pub const FILTER: &str = "run.filter";
/// How long the states of `--switch` take to be switched on and off, in seconds.
pub const SWITCHING: &str = "run.switching_s";
/// How often an environment of a session was started.
pub const STARTS: &str = "run.starts";
/// Pairs of processes of a session; its source gives the reason for the number.
pub const PAIRS: &str = "run.pairs";
/// Turns of a case in a pair of processes; its source gives the reason for the number.
pub const TURNS: &str = "run.turns";
/// Why an environment of a session stopped giving results, if it ended early or never began.
pub const LOST: &str = "run.lost";
/// Why commands were executed in turn, not in random order.
pub const IN_TURN: &str = tollgate_model::versus::IN_TURN;
/// The figure that was taken from an execution of a bench.
pub const STATISTIC: &str = "run.statistic";
/// The place of the build that has the code of the base at other addresses.
pub const CONTROL: &str = "run.control";

/// The fact that names the patterns which chose the cases; an empty list is everything.
pub fn patterns(patterns: &[String]) -> (String, Fact) {
    ("run.patterns".to_owned(), Fact::known(patterns.to_vec(), "the command line"))
}

/// The fact that names the machine, as the user named it.
pub fn machine(name: &str) -> (String, Fact) {
    (crate::export::environment::MACHINE.to_owned(), Fact::known(name, "--machine"))
}

/// The text of a fact that is known and a text.
pub fn text<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.get(name)?.value()?.as_text()
}

/// The figure of a fact that is known and a number.
pub fn number(facts: &Facts, name: &str) -> Option<f64> {
    facts.get(name)?.value()?.as_f64()
}

/// The flag of a fact that is known and a flag.
pub fn flag(facts: &Facts, name: &str) -> Option<bool> {
    facts.get(name)?.value()?.as_flag()
}

/// The source of a known fact.
pub fn source<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    match facts.get(name)? {
        Fact::Known { source, .. } => Some(source),
        Fact::Unknown { .. } => None,
    }
}

/// A fact's value as text: sizes with a unit.
pub fn in_words(name: &str, value: &FactValue) -> String {
    match value {
        FactValue::Integer(bytes) if is_size(name) => sized(*bytes),
        value => value.to_string(),
    }
}

pub(crate) fn sized(bytes: i64) -> String {
    let unit = [(1_i64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let exact = |&(unit, _): &(i64, &str)| bytes >= unit && bytes % unit == 0 && bytes / unit < 10_000;
    match (unit.into_iter().find(exact), unit.into_iter().find(|(unit, _)| bytes >= *unit)) {
        (Some((unit, name)), _) => format!("{} {name}", bytes / unit),
        (None, Some((unit, name))) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        (None, None) => format!("{bytes} bytes"),
    }
}

fn is_size(name: &str) -> bool {
    const SIZES: [&str; 11] = [
        "cgroup.memory_high",
        "cgroup.memory_max",
        "files.device.logical_block",
        "files.device.physical_block",
        "files.free",
        "memory.page_size",
        "memory.swap",
        "memory.total",
        "process.limit.address_space",
        "process.limit.locked_memory",
        "process.limit.stack",
    ];
    // `cache.l2`, but not `cache.l2.shared` and not `cache.line`.
    let is_cache = name.strip_prefix("cache.l").is_some_and(|rest| rest.len() < 3 && rest != "ine");
    is_cache || SIZES.contains(&name)
}

/// Whether the time stamp counter timed the batches, so that ticks are its cycles.
pub fn clock_is_tsc(facts: &Facts) -> bool {
    text(facts, CLOCK) == Some("tsc")
}

/// Whether the kernel's architecture is arm64.
pub fn is_arm64(facts: &Facts) -> bool {
    text(facts, "cpu.architecture").and_then(Architecture::named) == Some(Architecture::Arm64)
}

/// Whether QEMU TCG executes everything here: then times are not latencies.
pub fn emulated(facts: &Facts) -> bool {
    const LAYER: &str = "QEMU TCG";
    const SIGNATURE: &str = "TCGTCGTCGTCG";
    let says_so = |item: &String| item == LAYER || item.contains(SIGNATURE);
    ["hypervisor.layers", "hypervisor.signatures"].iter().any(|name| {
        let items = facts.get(*name).and_then(Fact::value);
        matches!(items, Some(FactValue::List(items)) if items.iter().any(says_so))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_counts_have_none() {
        let words = |name, number: i64| in_words(name, &FactValue::Integer(number));
        assert_eq!([words("cache.l2", 2 << 20), words("files.free", 1 << 10)], ["2 MiB", "1 KiB"]);
        assert_eq!([words("cache.l2.ways", 16), words("cache.line", 64)], ["16", "64"]);
    }
}
