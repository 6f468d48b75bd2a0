use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, FactValue, Unknown};
use crate::run::Facts;

/// A fact that differs between two environments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactDifference {
    /// Its dotted name.
    pub name: String,
    /// The [fact](#facts) in the base; None if the base has none of this name.
    pub base: Option<Fact>,
    /// The fact in the other.
    pub other: Option<Fact>,
}

impl FactDifference {
    /// Returns whether both environments know it.
    pub fn is_change(&self) -> bool {
        let is_known = |fact: &Option<Fact>| fact.as_ref().is_some_and(|fact| fact.value().is_some());
        is_known(&self.base) && is_known(&self.other)
    }
}

/// Compares by name. A fact differs if its value does, if only one environment knows it, or if it is unknown for another kind
/// of reason. The source does not count, and volatile facts are left out.
pub(super) fn differences(base: &Facts, other: &Facts) -> Vec<FactDifference> {
    let names: BTreeSet<&String> =
        base.keys().chain(other.keys()).filter(|name| !is_volatile(name)).collect();
    let pairs = names.into_iter().map(|name| (name, base.get(name), other.get(name)));
    pairs
        .filter(|(_, base, other)| !agree(*base, *other))
        .map(|(name, base, other)| FactDifference {
            name: name.clone(),
            base: base.cloned(),
            other: other.cloned(),
        })
        .collect()
}

/// Returns whether a fact of this name differs between any two moments, or runs, of one environment.
pub fn is_volatile(name: &str) -> bool {
    // Answers that `claims` got from other verbs are not state of the machine.
    const MOMENTS: [&str; 9] = [
        "load.",
        "pressure.",
        "steal.",
        "uptime",
        "run.",
        "claims.",
        "files.dir",
        "files.mount",
        "files.free",
    ];
    MOMENTS.iter().any(|start| name.starts_with(start))
        || name.split('.').skip(1).any(|part| part == "before" || part == "after")
}

fn agree(base: Option<&Fact>, other: Option<&Fact>) -> bool {
    match (base, other) {
        (Some(Fact::Known { value: base, .. }), Some(Fact::Known { value: other, .. })) => {
            same_value(base, other)
        }
        (Some(Fact::Unknown { why: base }), Some(Fact::Unknown { why: other })) => same_kind(base, other),
        _ => false,
    }
}

/// 3 and 3.0 are one value.
fn same_value(base: &FactValue, other: &FactValue) -> bool {
    base == other || base.as_f64().is_some_and(|base| other.as_f64() == Some(base))
}

fn same_kind(base: &Unknown, other: &Unknown) -> bool {
    std::mem::discriminant(base) == std::mem::discriminant(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lasting_differences_are_listed() {
        let base: Facts = [
            ("kernel.release", Fact::known("6.1", "uname(2)")),
            ("cpu.count", Fact::known(2, "sched_getaffinity(2)")),
            ("cpu.smt", Fact::refused("EACCES")),
            ("cpu.cores", Fact::known(2, "a")),
            ("load.one", Fact::known(0.5, "/proc/loadavg")),
            ("cpu.steal.before", Fact::known(1, "/proc/stat")),
            ("uptime", Fact::known(1, "/proc/uptime")),
            ("pages.thp", Fact::absent("no such file")),
            ("before.all", Fact::known(true, "x")),
        ]
        .map(|(name, fact)| (name.to_owned(), fact))
        .into();
        let mut other = base.clone();
        for name in ["load.one", "cpu.steal.before", "uptime", "kernel.release", "before.all"] {
            other.insert(name.into(), Fact::known("7", "elsewhere"));
        }
        other.insert("cpu.count".into(), Fact::known(2.0, "elsewhere"));
        other.insert("cpu.smt".into(), Fact::refused("EPERM"));
        other.insert("pages.thp".into(), Fact::unreadable("no such word"));
        other.remove("cpu.cores");
        let names: Vec<_> =
            differences(&base, &other).into_iter().map(|difference| difference.name).collect();
        assert_eq!(names, ["before.all", "cpu.cores", "kernel.release", "pages.thp"]);
        assert_eq!(differences(&base, &base), []);
    }
}
