//! Kernels side by side: a row for each case that some kernel changes, and the table of all counts.

use tollgate_model::compare::Verdict;
use tollgate_output::figures;

use super::ratios::axis;
use super::subject::Subject;
use crate::atlas::{Atlas, KernelsRow};
use crate::page::{Drawing, Figure, Mark, PictureRow, Rows, Table, Text};

/// `None` unless the runs belong to guests of several kernels.
pub fn figure(subjects: &[Subject]) -> Option<(Figure, Text)> {
    let summaries: Vec<_> = subjects.iter().map(|subject| &subject.summary).collect();
    let atlas = Atlas::of(&summaries)?;
    let changed = atlas.changed();
    let same = figures::count(atlas.unchanged().into_iter().sum(), "case", "cases");
    let description = format!(
        "Instructions of one operation, from {} to {}, in the order of releases: the last kernel's count as a multiple of the first one's; \
         a band reaches from the fewest to the most of any kernel; both counts stand at the right. The largest change of one kernel against \
         the one before stands first. {same} without a certain change of more than {} have no row.",
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
    let rows: Vec<PictureRow> = changed.into_iter().map(row).collect();
    let axis = axis(rows.iter().flat_map(|row| &row.marks).flat_map(Mark::reach))?;
    let drawing = Drawing::Rows(Rows { axis, rows, level: Some(1.0), is_by_environment: false });
    let figure = Figure {
        title: "Instructions by kernel".into(),
        description: description.into(),
        panels: vec![drawing.into()],
        numbers: Some(table(&atlas)),
        ..Figure::default()
    };
    Some((figure, Text::new(&title)))
}

fn row(row: &KernelsRow) -> PictureRow {
    let counts = || row.cells.iter().filter_map(|cell| Some(cell.count?.0)).filter(|count| *count > 0.0);
    let first = counts().next();
    let ratio = |count: f64| first.map_or(1.0, |first| count / first);
    let ends =
        counts().map(ratio).fold((1.0_f64, 1.0_f64), |(least, most), at| (least.min(at), most.max(at)));
    let at = counts().next_back().map_or(1.0, ratio);
    let verdict = match at {
        above if above > 1.0 + Atlas::least() => Verdict::Slower,
        below if below * (1.0 + Atlas::least()) < 1.0 => Verdict::Faster,
        _ => Verdict::Same,
    };
    PictureRow {
        name: Text::label(&row.case.to_string()),
        value: row.ends().into(),
        verdict: Some(verdict),
        marks: vec![Mark { at, interval: Some(ends), ..Mark::default() }],
    }
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
