//! Selection of registered benchmarks by pattern.

use std::collections::BTreeSet;

use tollgate_model::{Case, parameter};

use crate::files::large;
use crate::prelude::*;
use crate::registry::{self, SUITES};
use crate::workloads::Size;

/// No benchmark matches a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no benchmark matches {pattern:?}{}", hint(.near))]
pub struct UnknownPattern {
    /// The pattern.
    pub pattern: String,
    /// Similar names, nearest first; or cases of the benchmark that the pattern names.
    pub near: Vec<String>,
}

fn hint(near: &[String]) -> String {
    match near {
        [] => "; `tollgate list` shows all benchmarks".to_owned(),
        [name] => format!("; did you mean {name}?"),
        names => format!("; did you mean one of {}?", names.join(", ")),
    }
}

/// Selects a machine's cases of this extent that match any of `patterns`: a suite (`entry`), a benchmark (`entry/syscall`), a
/// case (`entry/seccomp{instructions=32}`) or some of its parameters, or any of these with `*` for any characters. Without a
/// pattern, all but whole commands and environments themselves (see [`Kind`]) are selected: with [`Extent::Usual`] the cases that are
/// [`in_everything`](Benchmark::in_everything), with [`Extent::Headlines`] the headlines. If no default case matches, a pattern also
/// finds cases of [`Extent::Thorough`] and of the other size. The baselines of selected cases are selected too.
///
/// # Errors
/// Returns the first pattern that matches nothing.
pub fn select(
    machine: &Topology,
    patterns: &[String],
    extent: Extent,
    size: Size,
) -> Result<Selection, UnknownPattern> {
    let candidates = candidates(machine);
    let is_usual = |candidate: &Candidate| match Size::named(word(&candidate.params, Size::PARAMETER)) {
        Some(other) => other == size,
        None => !candidate.is_extra || extent == Extent::Thorough,
    };
    let chosen_by = |pattern: &str| -> Vec<usize> {
        let matching =
            |candidate: &Candidate| matches(pattern, &candidate.benchmark.case(candidate.params.clone()));
        let among = |extra: bool| {
            let fits = |candidate: &Candidate| (extra || is_usual(candidate)) && matching(candidate);
            (0..candidates.len()).filter(|&at| fits(&candidates[at])).collect::<Vec<usize>>()
        };
        let usual = among(false);
        // Also for a benchmark that has no other cases.
        if usual.is_empty() { among(true) } else { usual }
    };
    let mut chosen: BTreeSet<usize> = BTreeSet::new();
    for pattern in patterns {
        let found = chosen_by(pattern);
        if found.is_empty() {
            return Err(UnknownPattern { pattern: pattern.clone(), near: hints(machine, pattern) });
        }
        chosen.extend(found);
    }
    if patterns.is_empty() {
        chosen.extend(chosen_by("*"));
        chosen.retain(|&at| matches!(candidates[at].benchmark.kind, Kind::Instance(_)));
        if extent == Extent::Usual {
            chosen.retain(|&at| (candidates[at].benchmark.in_everything)(&candidates[at].params, machine));
        }
        if extent == Extent::Headlines {
            chosen.retain(|&at| candidates[at].is_headline(machine));
        }
    }
    let base = |&at: &usize| candidates[at].benchmark.baseline_of(&candidates[at].params);
    let baseline_of: Vec<Case> = chosen.iter().filter_map(base).collect();
    let mut groups: Vec<Group> = Vec::new();
    for (at, Candidate { suite, benchmark, params, .. }) in candidates.into_iter().enumerate() {
        if !chosen.contains(&at) && !baseline_of.contains(&benchmark.case(params.clone())) {
            continue;
        }
        match groups.iter_mut().find(|group| group.name() == benchmark.group()) {
            Some(group) => group.cases.push((benchmark, params)),
            None => groups.push(Group { suite, cases: vec![(benchmark, params)] }),
        }
    }
    Ok(Selection { groups, find: registry::find })
}

/// Returns a pattern for the benchmarks of large files. Without [`Extent::Thorough`] they are measured only if a pattern means
/// nothing else, because each operation takes a second.
pub fn large_files() -> String {
    format!("{}*", large::PREFIX)
}

/// Sets the size of large files in bytes, a multiple of 1 MiB. Returns whether the selection has any.
pub fn with_file_size(selection: &mut Selection, bytes: u64) -> bool {
    let cases = selection.groups.iter_mut().flat_map(|group| &mut group.cases);
    let mut any = false;
    for (_, params) in cases.filter(|(benchmark, _)| benchmark.name.starts_with(large::PREFIX)) {
        params.insert(large::SIZE.to_owned(), large::named_size(bytes).as_str().into());
        any = true;
    }
    any
}

struct Candidate {
    suite: &'static Suite,
    benchmark: &'static Benchmark,
    params: Params,
    /// True if it belongs to [`Extent::Thorough`] only.
    is_extra: bool,
}

impl Candidate {
    fn is_headline(&self, machine: &Topology) -> bool {
        let mut headlines = self.benchmark.headlines.iter();
        headlines.any(|headline| self.benchmark.case_of(headline, machine).as_ref() == Some(&self.params))
    }
}

/// Returns every case of every suite; those of a benchmark are adjacent.
fn candidates(machine: &Topology) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for suite in SUITES {
        for benchmark in suite.benchmarks {
            let usual = (benchmark.cases)(machine).into_iter().map(|params| (params, false));
            let extra = (benchmark.thorough_cases)(machine).into_iter().map(|params| (params, true));
            let candidate = |(params, is_extra)| Candidate { suite, benchmark, params, is_extra };
            candidates.extend(usual.chain(extra).map(candidate));
        }
    }
    candidates
}

/// Returns whether a pattern, as [`select`] takes it, matches a case, even one of another machine or version.
pub fn matches(pattern: &str, case: &Case) -> bool {
    match pattern.split_once('{').and_then(|(name, rest)| Some((name, rest.strip_suffix('}')?))) {
        Some((name, pairs)) => wildcard(name, &case.benchmark) && pairs_match(pairs, &case.params),
        None => [&case.to_string(), &case.benchmark, case.suite()].iter().any(|name| wildcard(pattern, name)),
    }
}

/// Returns whether each `name=value` of a pattern is among the case's parameters; the case may have more.
fn pairs_match(pairs: &str, params: &Params) -> bool {
    pairs.split(',').map(str::trim).all(|pair| match pair.split_once('=') {
        Some((name, value)) => {
            params.get(parameter(name.trim())).is_some_and(|own| wildcard(value.trim(), &own.to_string()))
        }
        None => pair == "*",
    })
}

/// Returns whether `pattern`, in which `*` stands for any characters, matches all of `text`.
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

fn hints(machine: &Topology, pattern: &str) -> Vec<String> {
    // The benchmark exists and its parameters do not match: list its cases.
    if let Some(benchmark) = pattern.split_once('{').and_then(|(name, _)| registry::find(name)) {
        let cases = benchmark.cases_in(Extent::Thorough, machine).into_iter();
        let cases: Vec<String> = cases.map(|params| benchmark.case(params).to_string()).collect();
        return nearest(pattern, cases.iter().map(String::as_str)).into_iter().map(str::to_owned).collect();
    }
    let benchmarks = SUITES.iter().flat_map(|suite| suite.benchmarks.iter().map(|benchmark| benchmark.name));
    let names = SUITES.iter().map(|suite| suite.name).chain(benchmarks);
    near(pattern, names).into_iter().map(str::to_owned).collect()
}

const MOST_NEAR: usize = 3;
/// Longer texts do not resemble any name.
const LONGEST: usize = 64;

/// Returns the names that resemble `meant`, or whose part after a `/` does: at most three, nearest first. A name is similar if at
/// most a third of it is mistyped, or if one of the two contains the other. Names further away than the nearest are omitted.
pub fn near<'a>(meant: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    /// Shorter names occur in words by chance.
    const SHORTEST_PART: usize = 3;
    let most = (meant.len() / 3).max(1);
    let contains = |long: &str, part: &str| part.len() >= SHORTEST_PART && long.contains(part);
    let score = |name: &'a str| {
        let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
        let distance = distance(meant, name).min(distance(meant, last) + usize::from(last != name));
        let is_part = contains(&name.to_lowercase(), &meant.to_lowercase()) || contains(meant, name);
        let score = if is_part { distance.min(most) } else { distance };
        (score <= most).then_some((score, name.len().abs_diff(meant.len()), name))
    };
    let mut near: Vec<_> = names.filter_map(score).collect();
    near.sort_unstable();
    let best = near.first().map_or(0, |(score, ..)| *score);
    near.into_iter().filter(|(score, ..)| *score == best).take(MOST_NEAR).map(|(.., name)| name).collect()
}

/// Returns the three names that differ least from `meant`.
fn nearest<'a>(meant: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = names.map(|name| (distance(meant, name), name)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(MOST_NEAR).map(|(_, name)| name).collect()
}

/// Counts insertions, deletions, substitutions and transpositions between two texts, ignoring case.
fn distance(meant: &str, name: &str) -> usize {
    if meant.len() > LONGEST {
        usize::MAX / 2
    } else {
        strsim::osa_distance(&meant.to_lowercase(), &name.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::MACHINES;

    /// Selects cases on a machine with two processors.
    fn selected(patterns: &[&str], extent: Extent) -> Result<Selection, UnknownPattern> {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        select(&MACHINES[0].topology(), &patterns, extent, Size::Small)
    }

    #[test]
    fn a_pattern_is_a_suite_a_benchmark_a_case_or_has_wildcards() {
        let count = |pattern: &str| selected(&[pattern], Extent::Usual).map(|s| s.cases().count());
        assert_eq!(count("entry/call"), Ok(1));
        assert_eq!(count("entry/io-uring-nop"), Ok(3));
        assert_eq!(count("entry/io-uring-nop{batch=8}"), Ok(1));
        let forks = ["{}", "{page=4k}", "{until=exited, page=4k}", "{page=*}", "{*}"]
            .map(|pairs| count(&format!("processes/fork{pairs}")).unwrap_or(0));
        assert!(
            forks[0] == 0 && forks[1] > forks[2] && forks[3] > forks[1] && forks[4] >= forks[3],
            "{forks:?}"
        );
        assert_eq!(count("entry/int80*"), Ok(2));
        let suites = SUITES.iter().map(|suite| count(suite.name).expect("registered"));
        assert_eq!(count("*"), Ok(suites.sum()));
    }

    #[test]
    fn a_baseline_is_chosen_with_its_benchmark() {
        let selection = selected(&["entry/user-dispatch"], Extent::Usual).expect("registered");
        let names: Vec<String> = selection.cases().map(|case| case.to_string()).collect();
        assert_eq!(names, ["entry/syscall", "entry/user-dispatch"]);
    }

    #[test]
    fn what_leaves_a_wake_or_copies_its_process_has_processes_of_its_own() {
        let selection = selected(&["entry", "scaling"], Extent::Usual).expect("registered");
        let groups: Vec<(&str, usize)> =
            selection.groups.iter().map(|group| (group.name(), group.cases.len())).collect();
        let names: Vec<&str> = groups.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["entry", "entry/vm-exit", "scaling", "scaling/fork"]);
        let is_alone = |name: &str| {
            let group = selection.groups.iter().find(|group| group.name() == name).expect("one");
            group.cases.iter().all(|(benchmark, _)| benchmark.name == name)
        };
        assert!(is_alone("entry/vm-exit") && is_alone("scaling/fork"), "{groups:?}");
        assert!(!selection.groups[0].cases.iter().any(|(benchmark, _)| benchmark.name == "entry/vm-exit"));
    }

    #[test]
    fn headlines_are_chosen_where_no_pattern_asks_for_others() {
        let cases = |patterns: &[&str], extent| {
            selected(patterns, extent).expect("registered").cases().collect::<Vec<Case>>()
        };
        let is_headline = |case: &Case| {
            let benchmark = registry::find(&case.benchmark).expect("registered");
            benchmark.headlines.iter().any(|headline| headline.names(&case.params))
        };
        let (headlines, others): (Vec<Case>, Vec<Case>) =
            cases(&[], Extent::Headlines).into_iter().partition(is_headline);
        let marked = SUITES.iter().flat_map(|suite| suite.benchmarks.iter().map(|all| all.headlines.len()));
        assert_eq!(headlines.len(), marked.sum::<usize>());
        let is_baseline = |other: &&Case| {
            let find = |case: &Case| registry::find(&case.benchmark).expect("registered");
            headlines.iter().any(|case| find(case).baseline_of(&case.params).as_ref() == Some(*other))
        };
        assert!(others.iter().all(|other| is_baseline(&other)), "{others:?}");
        assert_eq!(cases(&["entry"], Extent::Headlines), cases(&["entry"], Extent::Usual));
    }

    #[test]
    fn an_unknown_pattern_names_similar_ones() {
        let unknown = |pattern: &str| selected(&[pattern], Extent::Usual).err().expect("unknown").near;
        assert_eq!(unknown("entry/sysall")[0], "entry/syscall");
        assert_eq!(unknown("entri")[0], "entry");
        assert!(unknown("syscall").contains(&"entry/syscall".to_owned()));
        assert!(
            unknown("entry/seccomp{instructions=33}").contains(&"entry/seccomp{instructions=32}".to_owned())
        );
        let near = unknown("processes/fork{dirty_mib=64, page=8k, until=exited}");
        assert_eq!(
            (near.len(), near[0].as_str()),
            (3, "processes/fork{dirty_mib=64, page=4k, until=exited}")
        );
        assert!(unknown("quite-something-else").is_empty());
        assert!(unknown(&"x".repeat(100_000)).is_empty());
    }

    #[test]
    fn a_pattern_may_have_the_name_that_a_parameter_had() {
        let case = |name: &str| Case {
            benchmark: "scaling/open".to_owned(),
            params: Params::from([(name.to_owned(), 2.into())]),
        };
        assert!(
            matches("scaling/open{users=2}", &case("tasks"))
                && matches("scaling/open{tasks=2}", &case("tasks"))
        );
        assert!(!matches("scaling/open{users=1}", &case("tasks")));
    }

    #[test]
    fn wildcards_match_whole_names() {
        assert!(
            wildcard("a*c", "abc") && wildcard("*", "") && wildcard("a**c", "ac") && wildcard("*b*", "abc")
        );
        assert!(!wildcard("a*c", "abcd") && !wildcard("ab", "abc") && !wildcard("a*bc*c", "abc"));
    }

    #[test]
    fn near_names_differ_by_a_slip_and_others_are_not_named() {
        let names = [
            "int",
            "int-swapgs",
            "call-gate",
            "syscall",
            "syscall-path",
            "ud1",
            "cr3",
            "page-fault",
            "tas-cli",
        ];
        for (meant, expected) in [
            ("sycall", vec!["syscall"]),
            ("sysclal", vec!["syscall"]),
            ("Syscall", vec!["syscall"]),
            ("page_fault", vec!["page-fault"]),
            ("udd", vec!["ud1"]),
            ("int80", vec!["int"]),
            ("call", vec!["syscall", "call-gate", "syscall-path"]),
            ("in", vec!["int"]),
            ("foo", vec![]),
            ("gp", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(near(meant, names.into_iter()), expected, "{meant}");
        }
        assert!(near(&"syscall".repeat(100_000), names.into_iter()).len() <= MOST_NEAR);
    }
}
