//! A section for each suite, with the pictures that fit it.

use std::collections::HashSet;

use crate::page::{Drawing, Figure, Key, MAX_ENVIRONMENTS, Panel, Section, Sign, Table, Text};
use tollgate_model::Case;
use tollgate_suites::SUITES;

use super::subject::Subject;
use super::{bars, curves, dots, levels, matrix, rows};
use crate::comparison::Comparison;
use crate::pictures;

/// Sections that are no suite, with their descriptions.
const OTHERS: [(&str, &str); 3] = [
    (TRACE, "A command and all that it started, traced."),
    (LAB, "The rings, crossed in a small kernel of our own, without an operating system."),
    (OTHER, "Cases that are unknown to this program."),
];
/// The section of commands that `tollgate trace` ran.
pub const TRACE: &str = "trace";
/// The section of the experiments of `tollgate lab`.
pub const LAB: &str = "lab";
/// The sections of commands.
pub const COMMANDS: [&str; 2] = ["workloads", TRACE];
/// The section of cases of unknown suites.
const OTHER: &str = "other";

/// The suite of a case.
pub fn suite_of(case: &Case) -> &str {
    let suite = case.benchmark.split('/').next().unwrap_or_default();
    known().find(|(name, _)| *name == suite).map_or(OTHER, |(name, _)| name)
}

/// The possible sections, and their descriptions.
fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    SUITES.iter().map(|suite| (suite.name, suite.about)).chain(OTHERS)
}

/// The suites with cases, in the order of the registry.
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

/// The signs of the environments, where there are several.
pub fn keys(subjects: &[Subject]) -> Vec<Key> {
    let key = |subject: &Subject| Key { sign: Sign::Look(subject.look), name: Text::label(&subject.name) };
    if subjects.len() < 2 { Vec::new() } else { subjects.iter().map(key).collect() }
}

/// A picture of each environment that has one, side by side.
pub fn panels<'a, 'b>(
    subjects: &'b [Subject<'a>],
    draw: impl Fn(&'b Subject<'a>) -> Option<Drawing>,
) -> Vec<Panel> {
    let is_comparison = subjects.len() > 1;
    let panel = |subject: &'b Subject<'a>| {
        Some(Panel {
            name: is_comparison.then(|| Text::label(&subject.name)),
            environment: is_comparison.then_some(subject.look.min(MAX_ENVIRONMENTS)),
            drawing: draw(subject)?,
        })
    };
    subjects.iter().filter_map(panel).collect()
}

/// The sections.
pub fn of(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Section> {
    suites(subjects).into_iter().map(|suite| section(suite, subjects, comparisons)).collect()
}

fn section(suite: &'static str, subjects: &[Subject], comparisons: &[Comparison]) -> Section {
    let about = known().find(|(name, _)| *name == suite).map_or("", |(_, about)| about);
    let mut figures: Vec<Figure> = match suite {
        "memory" => vec![curves::latency(subjects), matrix::of(subjects), dots::sharing(subjects)],
        "locks" => curves::trade(subjects),
        "processes" => vec![curves::creation(subjects)],
        "files" => vec![bars::bill(subjects)],
        _ => Vec::new(),
    }
    .into_iter()
    .flatten()
    .collect();
    let cases = cases(subjects, suite);
    figures.extend(bars::traced(subjects, suite, &cases));
    figures.extend(dots::of(subjects, suite, &cases));
    figures.extend(levels::of(subjects, &cases));
    Section {
        name: suite.into(),
        about: about.into(),
        findings: findings(suite, subjects),
        figures,
        tables: if suite == "locks" { features(subjects) } else { Vec::new() },
        estimates: rows::of(subjects, suite, &cases, comparisons),
    }
}

/// The findings of a suite.
fn findings(suite: &str, subjects: &[Subject]) -> Vec<Text> {
    let is_comparison = subjects.len() > 1;
    let of_suite = |from: &[String]| {
        from.first()
            .is_some_and(|first| suite_of(&Case::plain(first.split('{').next().unwrap_or_default())) == suite)
    };
    let sentences = subjects.iter().flat_map(|subject| {
        let prefix = if is_comparison { format!("{}: ", subject.name) } else { String::new() };
        let findings = subject.findings.iter().filter(|finding| of_suite(&finding.from));
        findings.map(move |finding| Text::new(&format!("{prefix}{}", finding.sentence)))
    });
    sentences.collect()
}

/// The features of each lock.
fn features(subjects: &[Subject]) -> Vec<Table> {
    let table = |subject: &Subject| {
        let rows = pictures::features::judged(&subject.summary)?;
        let of = if subjects.len() > 1 { format!(", {}", subject.name) } else { String::new() };
        let mut head = pictures::features::COLUMNS.map(Text::from).to_vec();
        head.push("evidence".into());
        let rows = rows.into_iter().map(|(words, evidence)| {
            let words = words.into_iter().map(Text::from);
            words.chain([Text::cut(&evidence.join("; "), 600)]).collect()
        });
        Some(Table {
            caption: format!("Features of each lock, with their evidence{of}").into(),
            head,
            rows: rows.collect(),
            is_open: false,
        })
    };
    subjects.iter().filter_map(table).collect()
}
