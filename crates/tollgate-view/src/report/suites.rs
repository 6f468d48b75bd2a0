//! The suites of a page, each of which has a section.

use std::collections::HashSet;

use tollgate_model::Case;
use tollgate_model::versus::{BENCHES, is_bench};
use tollgate_suites::SUITES;

use super::subject::Subject;

const OTHERS: [(&str, &str); 5] = [
    (VERSUS, "Commands of the user, executed in alternation."),
    (BENCHES, "Benches of builds, executed in alternation."),
    (TRACE, "A command and all processes that it started, traced."),
    (LAB, "Ring crossings in the lab's own small kernel, without an operating system."),
    (OTHER, "Cases that are unknown to this program."),
];
pub const VERSUS: &str = "versus";
pub const TRACE: &str = "trace";
const LAB: &str = "lab";
const OTHER: &str = "other";

pub fn suite_of(case: &Case) -> &str {
    if is_bench(&case.benchmark) {
        return BENCHES;
    }
    known().find(|(name, _)| *name == case.suite()).map_or(OTHER, |(name, _)| name)
}

fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    SUITES.iter().map(|suite| (suite.name, suite.about)).chain(OTHERS)
}

pub fn suites(subjects: &[Subject]) -> Vec<&'static str> {
    let cases = subjects.iter().flat_map(|subject| &subject.summary.rows).map(|row| row.case);
    let there: HashSet<&str> = cases.map(suite_of).collect();
    known().map(|(suite, _)| suite).filter(|suite| there.contains(suite)).collect()
}

/// All cases of a suite, those of the first environment first.
pub fn cases<'a>(subjects: &[Subject<'a>], suite: &str) -> Vec<&'a Case> {
    let mut seen = HashSet::new();
    let all = subjects.iter().flat_map(|subject| &subject.summary.rows).map(|row| row.case);
    all.filter(|case| suite_of(case) == suite && seen.insert(*case)).collect()
}

pub fn about(suite: &str) -> &'static str {
    known().find(|(name, _)| *name == suite).map_or("", |(_, about)| about)
}
