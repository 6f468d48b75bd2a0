//! Pictures side by side, one for each environment.

use super::subject::Subject;
use crate::page::{Axis, Drawing, Key, MAX_ENVIRONMENTS, Mark, Panel, PictureRow, Rows, Sign, Text};

pub fn keys(subjects: &[Subject]) -> Vec<Key> {
    let key = |subject: &Subject| Key { sign: Sign::Look(subject.look), name: Text::label(&subject.name) };
    if subjects.len() < 2 { Vec::new() } else { subjects.iter().map(key).collect() }
}

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

/// Rows of latencies of each environment, on one axis; `None` if none of them has a sign.
pub fn rows_of_times(subjects: &[Subject], rows: impl Fn(&Subject) -> Vec<PictureRow>) -> Option<Vec<Panel>> {
    let found: Vec<Vec<PictureRow>> = subjects.iter().map(rows).collect();
    let marks = found.iter().flatten().flat_map(|row| &row.marks);
    let axis = Axis::of_times(marks.flat_map(Mark::reach))?;
    let draw = |subject: &Subject| {
        let rows = found.get(subject.look)?.clone();
        (!rows.is_empty())
            .then(|| Drawing::Rows(Rows { axis: axis.clone(), rows, level: None, is_by_environment: false }))
    };
    Some(panels(subjects, draw))
}

pub fn signs(names: &[&'static str]) -> Vec<Key> {
    let key = |(look, name): (usize, &&'static str)| Key { sign: Sign::Look(look), name: (*name).into() };
    names.iter().enumerate().map(key).collect()
}
