//! A section for each suite, with the pictures that fit it.

use std::collections::BTreeMap;

use super::About;
use super::subject::Subject;
use super::suites::{about, cases, suite_of, suites};
use super::{curves, dots, ipc, levels, locks, matrix, rows, scaling, traced};
use crate::comparison::Comparison;
use crate::page::{Figure, Section, Table, Text};
use crate::pictures;
use crate::rules::{THRASH, sharing_rows};
use tollgate_model::Case;

pub fn of(
    subjects: &[Subject],
    comparisons: &[Comparison],
    other: About,
    facts: &mut BTreeMap<&'static str, Table>,
) -> Vec<Section> {
    let section =
        |suite| Section { facts: facts.remove(suite), ..section(suite, subjects, comparisons, other) };
    suites(subjects).into_iter().map(section).collect()
}

fn section(suite: &'static str, subjects: &[Subject], comparisons: &[Comparison], other: About) -> Section {
    let mut figures: Vec<Figure> = match suite {
        "memory" => vec![
            curves::latency(subjects),
            curves::bandwidth(subjects),
            matrix::figure(subjects),
            curves::sharing(subjects),
        ],
        "locks" => vec![locks::figure(subjects)],
        scaling::SUITE => vec![scaling::figure(subjects)],
        ipc::SUITE => vec![ipc::figure(subjects)],
        "processes" => vec![curves::creation(subjects)],
        _ => Vec::new(),
    }
    .into_iter()
    .flatten()
    .collect();
    let cases = cases(subjects, suite);
    figures.extend(dots::figure(subjects, suite, &cases));
    figures.extend(levels::figure(subjects, &cases));
    Section {
        name: suite.into(),
        about: about(suite).into(),
        findings: findings(suite, subjects),
        facts: None,
        figures,
        tables: match suite {
            "locks" => features(subjects),
            "memory" => sharing(subjects).into_iter().collect(),
            _ => traced::table(subjects, suite, &cases).into_iter().collect(),
        },
        estimates: rows::estimates(subjects, suite, &cases, comparisons, other),
    }
}

fn findings(suite: &str, subjects: &[Subject]) -> Vec<Text> {
    let sentences = subjects.iter().flat_map(|subject| {
        let prefix = subject.prefix(": ");
        // Those about sharing are the rows of a table.
        let is_of_suite = |case: &Case| suite_of(case) == suite && case.benchmark != THRASH;
        let findings =
            subject.findings.iter().filter(move |finding| finding.from.first().is_some_and(is_of_suite));
        findings.map(move |finding| Text::new(&format!("{prefix}{}", finding.sentence)))
    });
    sentences.collect()
}

fn sharing(subjects: &[Subject]) -> Option<Table> {
    const HEAD: [&str; 7] = ["pair", "order", "pages", "KiB", "storing is", "alone", "beside the other"];
    let several = subjects.len() > 1;
    let rows = subjects.iter().flat_map(|subject| {
        let name = several.then(|| Text::label(&subject.name));
        let rows = sharing_rows(&subject.summary).into_iter();
        rows.map(move |row| name.iter().cloned().chain(row.map(Text::from)).collect())
    });
    let rows: Vec<Vec<Text>> = rows.collect();
    let head = several.then_some("environment").into_iter().chain(HEAD);
    let table = Table::new("Storing to lines that another core stores to", head);
    (!rows.is_empty()).then_some(Table { rows, ..table })
}

fn features(subjects: &[Subject]) -> Vec<Table> {
    let table = |subject: &Subject| {
        let rows = pictures::features::judged(&subject.summary)?;
        let of = if subjects.len() > 1 { format!(", {}", subject.name) } else { String::new() };
        let caption = format!("Features of each lock, with their evidence{of}");
        let head = pictures::features::COLUMNS.into_iter().chain(["evidence"]);
        let rows = rows.into_iter().map(|(words, evidence)| {
            let words = words.into_iter().map(Text::from);
            words.chain([Text::cut(&evidence.join("; "), 600)]).collect()
        });
        Some(Table { rows: rows.collect(), ..Table::new(caption, head) })
    };
    subjects.iter().filter_map(table).collect()
}
