//! The latency of each operation of the suite `scaling` by the number of threads or processes.

use std::collections::BTreeMap;

use tollgate_model::Case;
use tollgate_output::figures;

use super::panels::{rows_of_times, signs};
use super::subject::{Subject, is_drawn, mark};
use crate::page::{Figure, PictureRow, Text};
use crate::summary::Figures;

/// The suite.
pub const SUITE: &str = "scaling";

/// The cases of an operation, by their number of tasks.
type ByTasks<'a> = BTreeMap<u64, &'a Figures<'a>>;

/// A row for each operation, by threads and by processes: by one, by two, and by the most.
pub fn figure(subjects: &[Subject]) -> Option<Figure> {
    let panels = rows_of_times(subjects, rows)?;
    Some(Figure {
        is_folded: true,
        title: "scaling: how long a thread or process waits for an operation, by their number".into(),
        description: "Where the signs of a row lie on each other, threads and processes do not slow each other down. The figures are operations a second \
                      of all together: of one, and of the most."
            .into(),
        keys: signs(&["one", "two", "one on every processor"]),
        panels,
        ..Figure::default()
    })
}

fn rows(subject: &Subject) -> Vec<PictureRow> {
    let mut operations: Vec<(String, ByTasks)> = Vec::new();
    let cases =
        subject.summary.measured().filter(|(case, figures)| case.suite() == SUITE && is_drawn(figures));
    for (case, figures) in cases {
        let Some(tasks) = case.number("tasks") else { continue };
        let name = name(case);
        match operations.iter_mut().find(|(known, _)| *known == name) {
            Some((_, by_tasks)) => drop(by_tasks.insert(tasks, figures)),
            None => operations.push((name, BTreeMap::from([(tasks, figures)]))),
        }
    }
    let row = |(name, by_tasks): (String, ByTasks)| {
        let most = *by_tasks.keys().max()?;
        let look = |tasks: u64| match tasks {
            1 => Some(0),
            2 => Some(1),
            tasks => (tasks == most).then_some(2),
        };
        let drawn = by_tasks.iter().filter_map(|(tasks, figures)| Some(mark(look(*tasks)?, figures)));
        let rate = |tasks: u64| Some(together(tasks, by_tasks.get(&tasks)?.estimate.median));
        let value = match (rate(1), rate(most)) {
            (Some(one), Some(all)) if most > 1 => figures::from_to(&one, &all),
            (one, all) => one.or(all).unwrap_or_default(),
        };
        Some(PictureRow {
            name: Text::label(&name),
            value: value.into(),
            verdict: None,
            marks: drawn.collect(),
        })
    };
    operations.into_iter().filter_map(row).collect()
}

/// `open own, threads`.
fn name(case: &Case) -> String {
    let operation = case.benchmark.rsplit('/').next().unwrap_or_default();
    let file = case.word("file").map(|file| format!(" {file}")).unwrap_or_default();
    format!("{operation}{file}, {}", case.word("kind").unwrap_or_default())
}

/// Operations a second of so many tasks, each of which waits so many nanoseconds: `1.2 M/s`.
fn together(tasks: u64, ns: f64) -> String {
    figures::per_second(tasks as f64 * 1e9 / ns)
}
