//! Choosing among the registered probes by pattern.

use tollgate_model::{Case, Params};

use crate::probe::{Probe, Suite};
use crate::registry::{self, SUITES};

/// The probes that a user asked for, with those that they are held against.
#[derive(Clone)]
pub struct Selection {
    pub(crate) groups: Vec<Group>,
    /// By which a bench process knows the probes that it is told of.
    pub(crate) find: fn(&str) -> Option<&'static Probe>,
}

/// The chosen cases of one suite; they share their rounds.
#[derive(Clone)]
pub(crate) struct Group {
    pub suite: &'static Suite,
    pub cases: Vec<(&'static Probe, Params)>,
}

/// No probe matches a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no probe matches {pattern:?}{}", hint(.near))]
pub struct UnknownPattern {
    /// As it was given.
    pub pattern: String,
    /// Names that are a slip of the finger away, nearest first; or cases of the probe that it names.
    pub near: Vec<String>,
}

fn hint(near: &[String]) -> String {
    match near {
        [] => "; `tollgate list` shows what can be measured".to_owned(),
        [name] => format!("; near is {name}"),
        names => format!("; near are {}", names.join(", ")),
    }
}

impl Selection {
    /// Every probe of every suite.
    pub fn everything() -> Self {
        Self::matching(&[]).unwrap_or(Self { groups: Vec::new(), find: registry::find })
    }

    /// The probes that any of `patterns` matches: a suite (`gates`), a probe (`gates/syscall`), a case
    /// (`gates/seccomp{instructions=32}`), or either with `*` for any run of characters. No pattern
    /// means everything. What a chosen probe is held against is chosen with it.
    ///
    /// # Errors
    /// The first pattern that matches nothing.
    pub fn matching(patterns: &[String]) -> Result<Self, UnknownPattern> {
        let every_case = || {
            SUITES.iter().flat_map(|suite| {
                let cases =
                    |probe: &'static Probe| (probe.cases)().into_iter().map(move |params| (probe, params));
                suite.probes.iter().flat_map(move |probe| cases(probe)).map(move |case| (*suite, case))
            })
        };
        if let Some(unknown) = patterns
            .iter()
            .find(|pattern| !every_case().any(|(_, (probe, params))| matches(pattern, probe, &params)))
        {
            return Err(UnknownPattern { pattern: unknown.clone(), near: near(unknown) });
        }
        let wanted = |probe: &Probe, params: &Params| {
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, probe, params))
        };
        let held_against: Vec<&str> = every_case()
            .filter(|(_, (probe, params))| wanted(probe, params))
            .filter_map(|(_, (probe, _))| probe.against)
            .collect();
        let mut groups: Vec<Group> = Vec::new();
        for (suite, (probe, params)) in every_case() {
            if !wanted(probe, &params) && !held_against.contains(&probe.name) {
                continue;
            }
            match groups.last_mut() {
                Some(group) if group.suite.name == suite.name => group.cases.push((probe, params)),
                _ => groups.push(Group { suite, cases: vec![(probe, params)] }),
            }
        }
        Ok(Self { groups, find: registry::find })
    }

    /// The cases that were chosen, in the order of the registry.
    pub fn cases(&self) -> impl Iterator<Item = Case> + '_ {
        self.groups
            .iter()
            .flat_map(|group| group.cases.iter().map(|(probe, params)| probe.case(params.clone())))
    }
}

fn matches(pattern: &str, probe: &Probe, params: &Params) -> bool {
    let case = probe.case(params.clone()).to_string();
    [case.as_str(), probe.name, probe.suite()].iter().any(|name| wildcard(pattern, name))
}

/// Whether `pattern`, in which `*` stands for any run of characters, is the whole of `text`.
fn wildcard(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(first) = pieces.next() else { return text.is_empty() };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// More would not be read.
const MOST_NEAR: usize = 3;

/// Names a slip of the finger away from `pattern`: at most three, nearest first.
fn near(pattern: &str) -> Vec<String> {
    // The probe is right and its parameters are not: name those that it has.
    if let Some(probe) = pattern.split_once('{').and_then(|(name, _)| registry::find(name)) {
        let mut cases: Vec<String> =
            (probe.cases)().into_iter().map(|params| probe.case(params).to_string()).collect();
        cases.sort_by_key(|case| edit_distance(pattern, case));
        cases.truncate(MOST_NEAR);
        return cases;
    }
    let names = SUITES
        .iter()
        .flat_map(|suite| std::iter::once(suite.name).chain(suite.probes.iter().map(|probe| probe.name)));
    let mut ranked: Vec<(usize, &str)> = names
        .flat_map(|name| {
            let tail = name.rsplit('/').next().unwrap_or(name);
            let distance =
                edit_distance(pattern, name).min(edit_distance(pattern, tail) + usize::from(tail != name));
            let within =
                if !pattern.is_empty() && name.contains(pattern) { distance.min(2) } else { distance };
            (within <= 2.max(pattern.len() / 3)).then_some((within, name))
        })
        .collect();
    ranked.sort();
    ranked.into_iter().take(MOST_NEAR).map(|(_, name)| name.to_owned()).collect()
}

/// Insertions, deletions and substitutions between two texts (Levenshtein 1966). A long pattern is
/// near nothing: it is not looked at past 64 bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() > 64 {
        return usize::MAX / 2;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_suite_a_probe_a_case_or_has_wildcards() {
        let count = |pattern: &str| Selection::matching(&[pattern.to_owned()]).map(|s| s.cases().count());
        assert_eq!(count("gates/call"), Ok(1));
        assert_eq!(count("gates/io-uring-nop"), Ok(3));
        assert_eq!(count("gates/io-uring-nop{batch=8}"), Ok(1));
        assert_eq!(count("gates/int80*"), Ok(2));
        let suites = SUITES.iter().map(|suite| count(suite.name).expect("registered"));
        assert_eq!(count("*"), Ok(suites.sum()));
    }

    #[test]
    fn what_a_chosen_probe_is_held_against_is_chosen_with_it() {
        let selection = Selection::matching(&["gates/user-dispatch".to_owned()]).expect("registered");
        let names: Vec<String> = selection.cases().map(|case| case.to_string()).collect();
        assert_eq!(names, ["gates/syscall", "gates/user-dispatch"]);
    }

    #[test]
    fn an_unknown_pattern_names_what_is_near() {
        let unknown = |pattern: &str| Selection::matching(&[pattern.to_owned()]).err().expect("unknown").near;
        assert_eq!(unknown("gates/sysall")[0], "gates/syscall");
        assert_eq!(unknown("gate")[0], "gates");
        assert!(unknown("syscall").contains(&"gates/syscall".to_owned()));
        assert!(
            unknown("gates/seccomp{instructions=33}").contains(&"gates/seccomp{instructions=32}".to_owned())
        );
        let near = unknown("processes/fork{dirty_mib=64, page=8k, until=gone}");
        assert_eq!((near.len(), near[0].as_str()), (3, "processes/fork{dirty_mib=64, page=4k, until=gone}"));
        assert!(unknown("quite-something-else").is_empty());
        assert!(unknown(&"x".repeat(100_000)).is_empty());
    }

    #[test]
    fn wildcards_match_whole_names() {
        assert!(
            wildcard("a*c", "abc") && wildcard("*", "") && wildcard("a**c", "ac") && wildcard("*b*", "abc")
        );
        assert!(!wildcard("a*c", "abcd") && !wildcard("ab", "abc") && !wildcard("a*bc*c", "abc"));
    }
}
