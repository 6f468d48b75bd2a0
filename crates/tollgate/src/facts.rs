//! The facts that the command itself looks at, by name: one place to look when one is called otherwise.

use tollgate_model::{Fact, FactValue, Facts};

/// Which clock the blocks were timed with: `tsc`, or the kernel's; its source says why.
pub const CLOCK: &str = "run.clock";
/// Ticks of that clock a second.
pub const CLOCK_HZ: &str = "run.clock_hz";
/// The processor that was measured.
pub const CPU: &str = "run.cpu";
/// Whether each bench process began anew.
pub const ISOLATION: &str = "run.isolation";

/// The fact that says which machine it was, in the user's words.
pub fn machine(name: &str) -> (String, Fact) {
    (tollgate_view::export::environment::MACHINE.to_owned(), Fact::known(name, "--machine"))
}

/// The text of a fact that is known and a text.
pub fn text<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    facts.get(name)?.value()?.as_text()
}

/// The figure of a fact that is known and a number.
pub fn number(facts: &Facts, name: &str) -> Option<f64> {
    facts.get(name)?.value()?.as_f64()
}

/// The flag of a fact that is known and one.
pub fn flag(facts: &Facts, name: &str) -> Option<bool> {
    facts.get(name)?.value()?.as_flag()
}

/// Where a known fact comes from.
pub fn source<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    match facts.get(name)? {
        Fact::Known { source, .. } => Some(source),
        Fact::Unknown { .. } => None,
    }
}

/// Whether blocks were timed with the time stamp counter, so that ticks are its cycles.
pub fn clock_is_tsc(facts: &Facts) -> bool {
    text(facts, CLOCK) == Some("tsc")
}

/// Whether QEMU's translator executes everything here: then no time is a price.
pub fn emulated(facts: &Facts) -> bool {
    const LAYER: &str = "QEMU TCG";
    const SIGNATURE: &str = "TCGTCGTCGTCG";
    let says_so = |item: &String| item == LAYER || item.contains(SIGNATURE);
    ["hypervisor.layers", "hypervisor.signatures"].iter().any(|name| {
        let items = facts.get(*name).and_then(Fact::value);
        matches!(items, Some(FactValue::List(items)) if items.iter().any(says_so))
    })
}
