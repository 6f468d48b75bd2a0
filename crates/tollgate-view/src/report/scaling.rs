//! The latency of each operation of the suite `scaling` by the number of its users.

use std::collections::BTreeMap;

use tollgate_model::Case;
use tollgate_output::figures;

use super::panels::{rows_of_times, signs};
use super::subject::{Subject, is_drawn, mark};
use crate::page::{Figure, Row, Text};
use crate::summary::Figures;

/// The suite.
pub const SUITE: &str = "scaling";

/// The cases of an operation, by their number of users.
type ByUsers<'a> = BTreeMap<u64, &'a Figures<'a>>;

/// A row for each operation and kind of users: one user, two, and the most.
pub fn of(subjects: &[Subject]) -> Option<Figure> {
    let panels = rows_of_times(subjects, rows)?;
    Some(Figure {
        is_folded: true,
        title: "scaling: what a user waits for an operation, by the number of users".into(),
        description: "Where the signs of a row lie on each other, users do not slow each other down. The figures are operations a second \
                      of all users together: of one user, and of the most."
            .into(),
        keys: signs(&["1 user", "2 users", "a user on every processor"]),
        panels,
        ..Figure::default()
    })
}

fn rows(subject: &Subject) -> Vec<Row> {
    let mut operations: Vec<(String, ByUsers)> = Vec::new();
    let cases =
        subject.summary.measured().filter(|(case, figures)| case.suite() == SUITE && is_drawn(figures));
    for (case, figures) in cases {
        let Some(users) = case.number("users") else { continue };
        let name = name(case);
        match operations.iter_mut().find(|(known, _)| *known == name) {
            Some((_, by_users)) => drop(by_users.insert(users, figures)),
            None => operations.push((name, BTreeMap::from([(users, figures)]))),
        }
    }
    let row = |(name, by_users): (String, ByUsers)| {
        let most = *by_users.keys().max()?;
        let look = |users: u64| match users {
            1 => Some(0),
            2 => Some(1),
            users => (users == most).then_some(2),
        };
        let drawn = by_users.iter().filter_map(|(users, figures)| Some(mark(look(*users)?, figures)));
        let rate = |users: u64| Some(together(users, by_users.get(&users)?.estimate.median));
        let value = match (rate(1), rate(most)) {
            (Some(one), Some(all)) if most > 1 => figures::from_to(&one, &all),
            (one, all) => one.or(all).unwrap_or_default(),
        };
        Some(Row { name: Text::label(&name), value: value.into(), verdict: None, marks: drawn.collect() })
    };
    operations.into_iter().filter_map(row).collect()
}

/// `open own, threads`.
fn name(case: &Case) -> String {
    let operation = case.benchmark.rsplit('/').next().unwrap_or_default();
    let file = case.word("file").map(|file| format!(" {file}")).unwrap_or_default();
    format!("{operation}{file}, {}", case.word("kind").unwrap_or_default())
}

/// Operations a second of so many users, each of which waits so many nanoseconds: `1.2 M/s`.
fn together(users: u64, ns: f64) -> String {
    figures::per_second(users as f64 * 1e9 / ns)
}
