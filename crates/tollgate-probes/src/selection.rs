//! Choosing among the registered probes by pattern.

use std::collections::BTreeSet;
use std::time::Duration;

use tollgate_model::{Case, Params};

use crate::bench::Plan;
use crate::probe::{Chosen, Extent, Means, Probe, Suite, word};
use crate::registry::{self, SUITES};
use crate::workloads::Size;

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
    pub cases: Vec<Chosen>,
}

impl Group {
    /// The time that its cases get where nobody says how much; None where they share that of all rounds.
    pub fn usual_time(&self) -> Option<Duration> {
        match self.suite.means {
            Means::Rounds => None,
            Means::Commands(commands) => Some((commands.usual)(&self.cases)),
        }
    }
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
    /// All that is measured where nobody says what.
    pub fn everything() -> Self {
        Self::matching(&[], Extent::Usual, Size::Small)
            .unwrap_or(Self { groups: Vec::new(), find: registry::find })
    }

    /// The cases of such an extent that any of `patterns` matches: a suite (`gates`), a probe (`gates/syscall`), a
    /// case (`gates/seccomp{instructions=32}`) or some of its parameters, or either with `*` for any run of
    /// characters. No pattern means everything but whole commands, see [`Means::Commands`]. A pattern with parameters
    /// finds the cases of [`Extent::Thorough`] and of the other size as well, where no usual one matches. What a chosen
    /// probe is held against is chosen with it.
    ///
    /// # Errors
    /// The first pattern that matches nothing.
    pub fn matching(patterns: &[String], extent: Extent, size: Size) -> Result<Self, UnknownPattern> {
        let candidates = candidates();
        let is_usual = |candidate: &Candidate| match Size::named(word(&candidate.params, Size::PARAMETER)) {
            Some(other) => other == size,
            None => !candidate.is_extra || extent == Extent::Thorough,
        };
        let chosen_by = |pattern: &str| -> Vec<usize> {
            let matching = |candidate: &Candidate| matches(pattern, candidate.probe, &candidate.params);
            let among = |extra: bool| {
                let fits = |candidate: &Candidate| (extra || is_usual(candidate)) && matching(candidate);
                (0..candidates.len()).filter(|&at| fits(&candidates[at])).collect::<Vec<usize>>()
            };
            let usual = among(false);
            if usual.is_empty() && pattern.contains('{') { among(true) } else { usual }
        };
        let mut chosen: BTreeSet<usize> = BTreeSet::new();
        for pattern in patterns {
            let found = chosen_by(pattern);
            if found.is_empty() {
                return Err(UnknownPattern { pattern: pattern.clone(), near: near(pattern) });
            }
            chosen.extend(found);
        }
        if patterns.is_empty() {
            chosen.extend(chosen_by("*"));
            chosen.retain(|&at| matches!(candidates[at].suite.means, Means::Rounds));
        }
        let base = |&at: &usize| candidates[at].probe.held_against(&candidates[at].params);
        let held_against: Vec<Case> = chosen.iter().filter_map(base).collect();
        let mut groups: Vec<Group> = Vec::new();
        for (at, Candidate { suite, probe, params, .. }) in candidates.into_iter().enumerate() {
            if !chosen.contains(&at) && !held_against.contains(&probe.case(params.clone())) {
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

    /// The time that a run of them gets where nobody says how much.
    pub fn usual_time(&self) -> Duration {
        let rounds = self.groups.iter().any(|group| group.usual_time().is_none());
        let commands: Duration = self.groups.iter().filter_map(Group::usual_time).sum();
        commands + if rounds { Plan::STANDARD } else { Duration::ZERO }
    }
}

/// A case that can be chosen.
struct Candidate {
    suite: &'static Suite,
    probe: &'static Probe,
    params: Params,
    /// It belongs to [`Extent::Thorough`] only.
    is_extra: bool,
}

/// Every case of every suite, those of a probe together.
fn candidates() -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for suite in SUITES {
        for probe in suite.probes {
            let usual = (probe.cases)().into_iter().map(|params| (params, false));
            let extra = (probe.more)().into_iter().map(|params| (params, true));
            let candidate = |(params, is_extra)| Candidate { suite, probe, params, is_extra };
            candidates.extend(usual.chain(extra).map(candidate));
        }
    }
    candidates
}

fn matches(pattern: &str, probe: &Probe, params: &Params) -> bool {
    match pattern.split_once('{').and_then(|(name, rest)| Some((name, rest.strip_suffix('}')?))) {
        Some((name, pairs)) => wildcard(name, probe.name) && pairs_match(pairs, params),
        None => {
            let case = probe.case(params.clone()).to_string();
            [case.as_str(), probe.name, probe.suite()].iter().any(|name| wildcard(pattern, name))
        }
    }
}

/// Whether each `name=value` of a pattern is one of the case's parameters; the case may have more.
fn pairs_match(pairs: &str, params: &Params) -> bool {
    pairs.split(',').map(str::trim).all(|pair| match pair.split_once('=') {
        Some((name, value)) => {
            params.get(name.trim()).is_some_and(|own| wildcard(value.trim(), &own.to_string()))
        }
        None => pair == "*",
    })
}

/// Whether `pattern`, in which `*` stands for any run of characters, is the whole of `text`.
pub fn wildcard(pattern: &str, text: &str) -> bool {
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
        let mut cases: Vec<String> = probe
            .cases_in(Extent::Thorough)
            .into_iter()
            .map(|params| probe.case(params).to_string())
            .collect();
        tollgate_model::sort::by_key(&mut cases, |case| edit_distance(pattern, case));
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
    tollgate_model::sort::ascending(&mut ranked);
    ranked.into_iter().take(MOST_NEAR).map(|(_, name)| name.to_owned()).collect()
}

/// Insertions, deletions and substitutions between two texts (Levenshtein 1966). A long pattern is
/// near nothing: it is not looked at past 64 bytes.
#[must_use]
pub fn edit_distance(a: &str, b: &str) -> usize {
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
        let count = |pattern: &str| {
            Selection::matching(&[pattern.to_owned()], Extent::Usual, Size::Small).map(|s| s.cases().count())
        };
        assert_eq!(count("gates/call"), Ok(1));
        assert_eq!(count("gates/io-uring-nop"), Ok(3));
        assert_eq!(count("gates/io-uring-nop{batch=8}"), Ok(1));
        let forks = ["{}", "{page=4k}", "{until=gone, page=4k}", "{page=*}", "{*}"]
            .map(|pairs| count(&format!("processes/fork{pairs}")).unwrap_or(0));
        assert!(
            forks[0] == 0 && forks[1] > forks[2] && forks[3] > forks[1] && forks[4] >= forks[3],
            "{forks:?}"
        );
        assert_eq!(count("gates/int80*"), Ok(2));
        let suites = SUITES.iter().map(|suite| count(suite.name).expect("registered"));
        assert_eq!(count("*"), Ok(suites.sum()));
    }

    #[test]
    fn what_a_chosen_probe_is_held_against_is_chosen_with_it() {
        let selection = Selection::matching(&["gates/user-dispatch".to_owned()], Extent::Usual, Size::Small)
            .expect("registered");
        let names: Vec<String> = selection.cases().map(|case| case.to_string()).collect();
        assert_eq!(names, ["gates/syscall", "gates/user-dispatch"]);
    }

    #[test]
    fn an_unknown_pattern_names_what_is_near() {
        let unknown = |pattern: &str| {
            Selection::matching(&[pattern.to_owned()], Extent::Usual, Size::Small)
                .err()
                .expect("unknown")
                .near
        };
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
