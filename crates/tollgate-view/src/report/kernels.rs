//! Kernels side by side: a line for each case that some kernel changes, and the table of all counts.

use tollgate_model::compare::Verdict;
use tollgate_output::figures;

use super::subject::Subject;
use crate::atlas::{Atlas, KernelsRow};
use crate::page::{Drawing, Figure, Line, Lines, Table, Text};

/// The figure, and the title of its page; None where the runs are not of guests of several kernels.
pub fn figure(subjects: &[Subject]) -> Option<(Figure, Text)> {
    let summaries: Vec<_> = subjects.iter().map(|subject| &subject.summary).collect();
    let atlas = Atlas::of(&summaries)?;
    let changed = atlas.changed();
    let same = figures::count(atlas.unchanged().into_iter().sum(), "case", "cases");
    let description = format!(
        "Instructions of one operation under each kernel, in the order of releases, from {} to {}; the first and the last count at the \
         right. The largest change of one kernel against the one before stands first. {same} without a certain change of more than {} have no line.",
        atlas.kernels.first()?,
        atlas.kernels.last()?,
        figures::percent(Atlas::least())
    );
    let names = atlas.short_names();
    let title = format!(
        "{} kernels, {} to {}: {} of {} counted cases changed",
        names.len(),
        names.first()?,
        names.last()?,
        changed.len(),
        atlas.rows.len()
    );
    let lines = Lines { rows: changed.into_iter().map(line).collect() };
    let figure = Figure {
        title: "Instructions by kernel".into(),
        description: description.into(),
        panels: if lines.rows.is_empty() { Vec::new() } else { vec![Drawing::Lines(lines).into()] },
        numbers: Some(table(&atlas)),
        ..Figure::default()
    };
    Some((figure, Text::new(&title)))
}

fn line(row: &KernelsRow) -> Line {
    let points: Vec<Option<f64>> = row.cells.iter().map(|cell| cell.count.map(|(count, _)| count)).collect();
    let mut known = points.iter().flatten();
    let ends = known.next().zip(known.next_back());
    let ratio = ends.map_or(1.0, |(first, last)| last / first);
    let verdict = match ratio {
        above if above > 1.0 + Atlas::least() => Verdict::Slower,
        below if below * (1.0 + Atlas::least()) < 1.0 => Verdict::Faster,
        _ => Verdict::Same,
    };
    Line { name: Text::label(&row.case.to_string()), value: row.ends().into(), verdict, points }
}

fn table(atlas: &Atlas) -> Table {
    let head = std::iter::once("case".to_owned()).chain(atlas.short_names());
    let row = |row: &KernelsRow| {
        let cells = row.cells.iter().map(|cell| Text::from(cell.signed().trim().to_owned()));
        std::iter::once(Text::label(&row.case.to_string())).chain(cells).collect()
    };
    let caption =
        "All counts; + more and - fewer than under the kernel before, = the same, ~ open, since it varies";
    Table { rows: atlas.rows.iter().map(row).collect(), ..Table::new(caption, head) }
}
