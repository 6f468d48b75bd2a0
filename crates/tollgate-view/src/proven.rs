//! A proven cause: two environments that alternated, or whose instructions were counted, and that differ only by one setting.

use std::collections::BTreeMap;
use std::fmt;

use tollgate_environments::{Changes, changes, is_alone};
use tollgate_model::compare::FactDifference;
use tollgate_model::run::Part;
use tollgate_model::{Fact, Run};

/// The setting by which two environments of a session differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    /// The setting's file, such as `/sys/kernel/mm/transparent_hugepage/enabled`, or the key of the environment: `seccomp`.
    pub setting: String,
    /// Its value in the base.
    pub was: String,
    /// Its value in the other.
    pub value: String,
    /// The facts that differ by it.
    pub facts: Vec<String>,
}

const NOT_SET: &str = "not set";

impl fmt::Display for Proven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} → {}, the only thing that was changed", self.setting, self.was, self.value)
    }
}

impl Proven {
    /// The only setting by which two runs of a session differ; `None` if they differ by none, by several, or by more than
    /// settings. `facts` are those that differ between the runs.
    pub fn new(base: &Run, other: &Run, facts: &[FactDifference]) -> Option<Self> {
        let (base, other) = parts(base, other).filter(|(base, other)| base.paired && other.paired)?;
        let by_state = Self::by_knob(base, other, facts).or_else(|| Self::by_switch(base, other, facts));
        by_state.or_else(|| Self::by_key(base, other, facts))
    }

    /// Like [`Proven::new`] for two runs that counted instructions, which are alike in everything but the setting even without turns.
    pub fn of_counts(base: &Run, other: &Run, facts: &[FactDifference]) -> Option<Self> {
        let (base, other) = parts(base, other)?;
        Self::by_key(base, other, facts)
    }

    /// The base has the setting's usual value, the other another one.
    fn by_knob(base: &Part, other: &Part, facts: &[FactDifference]) -> Option<Self> {
        let knob = other.knob.as_ref().filter(|_| base.knob.is_none())?;
        // The other may be named after its setting.
        let is_alike = base.environment == other.environment || other.environment.contains(&knob.path);
        let is_of_it = |fact: &&FactDifference| {
            [&fact.base, &fact.other].into_iter().flatten().any(|fact| match fact {
                Fact::Known { source, .. } => source.contains(&knob.path),
                Fact::Unknown { .. } => false,
            })
        };
        is_alike.then(|| Self {
            setting: knob.path.clone(),
            was: knob.was.clone(),
            value: knob.value.clone(),
            facts: facts.iter().filter(is_of_it).map(|fact| fact.name.clone()).collect(),
        })
    }

    /// Exactly one state is on in the other run, and none in the base.
    fn by_switch(base: &Part, other: &Part, facts: &[FactDifference]) -> Option<Self> {
        let ([], [switch]) = (base.switches.as_slice(), other.switches.as_slice()) else { return None };
        let is_read = |fact: &&FactDifference| tollgate_inspect::effect(&fact.name).is_some();
        (base.environment == other.environment).then(|| Self {
            setting: switch.name.clone(),
            was: "off".to_owned(),
            value: "on".to_owned(),
            facts: facts.iter().filter(is_read).map(|fact| fact.name.clone()).collect(),
        })
    }

    fn by_key(base: &Part, other: &Part, facts: &[FactDifference]) -> Option<Self> {
        if base.knob != other.knob || base.switches != other.switches {
            return None;
        }
        let [(kind, base), (kind_of_other, other)] =
            [base, other].map(|part| keys(part.stands_for.as_ref().unwrap_or(&part.environment)));
        let names = base.keys().chain(other.keys());
        let mut differing: Vec<&str> =
            names.filter(|name| base.get(*name) != other.get(*name)).copied().collect();
        differing.sort_unstable();
        differing.dedup();
        let [key] = differing.as_slice() else { return None };
        let value = |keys: &BTreeMap<&str, String>| keys.get(key).cloned().unwrap_or(NOT_SET.to_owned());
        let changes = changes(kind, key).filter(|_| kind == kind_of_other)?;
        let reads = |fact: &&FactDifference| match changes {
            Changes::Facts(starts) => starts.iter().any(|start| fact.name.starts_with(start)),
            Changes::AnyFact | Changes::More => tollgate_inspect::effect(&fact.name).is_some(),
        };
        (changes != Changes::More).then(|| Self {
            setting: (*key).to_owned(),
            was: value(&base),
            value: value(&other),
            facts: facts.iter().filter(reads).map(|fact| fact.name.clone()).collect(),
        })
    }

    /// The facts that it changed, by name; the setting if no fact reads it.
    pub fn causes(&self) -> Vec<&str> {
        if self.facts.is_empty() {
            vec![&self.setting]
        } else {
            self.facts.iter().map(String::as_str).collect()
        }
    }
}

fn parts<'a>(base: &'a Run, other: &'a Run) -> Option<(&'a Part, &'a Part)> {
    let parts = base.session.as_ref().zip(other.session.as_ref());
    parts.filter(|(base, other)| base.id == other.id)
}

/// The kind of an environment and its keys: `host:seccomp=default,nice=5`.
fn keys(environment: &str) -> (&str, BTreeMap<&str, String>) {
    let (kind, rest) = environment.split_once(':').unwrap_or((environment, ""));
    let mut keys: BTreeMap<&str, String> = BTreeMap::new();
    let mut last = None;
    for piece in rest.split(',').filter(|piece| !piece.is_empty()) {
        match (piece.split_once('='), last) {
            _ if is_alone(kind, piece) => {
                keys.insert(piece, String::new());
            }
            (Some((key, value)), _) => {
                keys.insert(key, value.to_owned());
                last = Some(key);
            }
            (None, Some(key)) => keys.entry(key).or_default().push_str(&format!(",{piece}")),
            (None, None) => {
                keys.insert(piece, String::new());
            }
        }
    }
    (kind, keys)
}
