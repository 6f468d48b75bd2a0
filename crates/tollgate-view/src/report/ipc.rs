//! The round trips of the suite `ipc`: a row for each channel and size of messages, on one processor and on two.

use tollgate_model::Case;
use tollgate_output::figures;

use super::panels::{rows_of_times, signs};
use super::subject::{Subject, is_drawn, mark};
use crate::page::{Figure, PictureRow, Text};
use crate::summary::Figures;
use crate::together::together;

pub const SUITE: &str = "ipc";
/// The benchmarks of messages: the one that is drawn, and the one whose bytes per second are only in the table.
pub const MESSAGES: [&str; 2] = ["ipc/round-trip", "ipc/throughput"];

pub fn figure(subjects: &[Subject]) -> Option<Figure> {
    let panels = rows_of_times(subjects, rows)?;
    Some(Figure {
        is_folded: true,
        title: "ipc: a message to another process and its answer".into(),
        description: "On two processors a message wakes the other one, which takes longer than a switch if that one is idle; polling needs no wake-up."
            .into(),
        keys: signs(&["both on one processor", "on two processors"]),
        panels,
        ..Figure::default()
    })
}

fn rows(subject: &Subject) -> Vec<PictureRow> {
    let is_shown = |case: &Case, figures: &Figures| {
        case.benchmark == MESSAGES[0] && case.word("between") == Some("processes") && is_drawn(figures)
    };
    let found = subject.summary.measured().filter(|(case, figures)| is_shown(case, figures));
    let found =
        found.map(|(case, figures)| (name(case), (usize::from(case.word("cpus") != Some("same")), figures)));
    let row = |(name, marks): (String, Vec<(usize, &Figures)>)| {
        // With several relations of processors, the closest one comes first.
        let pair = [0, 1].map(|look| marks.iter().find(|(at, _)| *at == look).map(|(_, figures)| *figures));
        let value = match pair {
            [Some(one), Some(two)] => figures::from_to(&one.in_words(), &two.in_words()),
            [one, two] => one.or(two).map(Figures::in_words).unwrap_or_default(),
        };
        let marks = pair.iter().enumerate().filter_map(|(look, figures)| Some(mark(look, (*figures)?)));
        PictureRow { name: Text::label(&name), value: value.into(), verdict: None, marks: marks.collect() }
    };
    together(found).into_iter().map(row).collect()
}

/// `pipe, 4 KiB`.
fn name(case: &Case) -> String {
    let size = match case.number("bytes").unwrap_or(0) {
        bytes if bytes >= 1024 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    };
    format!("{}, {size}", case.word("by").unwrap_or_default())
}
