//! The latency of each operation of the suite `scaling` by the number of threads or processes.

use tollgate_model::Case;
use tollgate_output::figures;

use super::panels::{rows_of_times, signs};
use super::subject::{Subject, is_drawn, mark};
use crate::page::{Figure, PictureRow, Text};
use crate::summary::Figures;
use crate::together::together;

pub const SUITE: &str = "scaling";

pub fn figure(subjects: &[Subject]) -> Option<Figure> {
    let panels = rows_of_times(subjects, rows)?;
    Some(Figure {
        is_folded: true,
        title: "scaling: how long a thread or process waits for an operation, by their number".into(),
        description: "If the marks of a row coincide, threads and processes do not slow each other down. The figures are operations per second of all together: for one, and for the most."
            .into(),
        keys: signs(&["one", "two", "one on every processor"]),
        panels,
        ..Figure::default()
    })
}

fn rows(subject: &Subject) -> Vec<PictureRow> {
    let cases =
        subject.summary.measured().filter(|(case, figures)| case.suite() == SUITE && is_drawn(figures));
    let operations = cases.filter_map(|(case, figures)| Some((name(case), (case.number("tasks")?, figures))));
    let row = |(name, mut by_tasks): (String, Vec<(u64, &Figures)>)| {
        by_tasks.sort_unstable_by_key(|(tasks, _)| *tasks);
        let most = by_tasks.last()?.0;
        let look = |tasks: u64| match tasks {
            1 => Some(0),
            2 => Some(1),
            tasks => (tasks == most).then_some(2),
        };
        let drawn = by_tasks.iter().filter_map(|(tasks, figures)| Some(mark(look(*tasks)?, figures)));
        let rate = |wanted: u64| {
            let (_, figures) = by_tasks.iter().find(|(tasks, _)| *tasks == wanted)?;
            Some(of_all(wanted, figures.estimate.median))
        };
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
    together(operations).into_iter().filter_map(row).collect()
}

/// `open own, threads`.
fn name(case: &Case) -> String {
    let operation = case.benchmark.rsplit('/').next().unwrap_or_default();
    let file = case.word("file").map(|file| format!(" {file}")).unwrap_or_default();
    format!("{operation}{file}, {}", case.word("kind").unwrap_or_default())
}

/// Operations per second of this many tasks, each of which waits this many nanoseconds: `1.2 M/s`.
fn of_all(tasks: u64, ns: f64) -> String {
    figures::per_second(tasks as f64 * 1e9 / ns)
}
