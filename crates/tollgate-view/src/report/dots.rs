//! Estimates of a suite as marks, a row a case.

use std::collections::BTreeMap;

use crate::page::{Axis, Dots, Drawing, Figure, Key, Mark, Row, Sign, Text};
use tollgate_model::{Case, ParamValue};

use super::curves::CREATIONS;
use super::panels::{keys, panels};
use super::subject::{Subject, is_drawn, mark};
use crate::figures;
use crate::pictures::{bill, curve, matrix, trade};
use crate::summary::Figures;

/// More rows are no picture.
const MOST: usize = 28;
const THRASH: &str = "memory/thrash";

/// Benchmarks with a picture of their own, or without an estimate to draw.
const ELSEWHERE: [&str; 6] =
    [curve::BENCHMARK, trade::BENCHMARK, bill::BENCHMARK, THRASH, "locks/preempted", "locks/killed"];

/// The estimates of a suite that have no other picture.
pub fn of(subjects: &[Subject], suite: &str, cases: &[&Case]) -> Option<Figure> {
    let is_elsewhere = |case: &Case| {
        let benchmark = case.benchmark.as_str();
        let is_of_matrix = benchmark == matrix::BENCHMARK && super::matrix::is_drawn(subjects);
        ELSEWHERE.contains(&benchmark) || CREATIONS.contains(&benchmark) || is_of_matrix
    };
    let is_comparison = subjects.len() > 1;
    let mut rows = Vec::new();
    let mut left_out = 0;
    for case in cases.iter().filter(|case| !is_elsewhere(case)) {
        let mut marks: Vec<_> = subjects.iter().filter_map(|subject| subject.mark(case)).collect();
        if marks.is_empty() {
            continue;
        }
        if !is_comparison {
            // The row has its name and value.
            marks.iter_mut().for_each(|mark| mark.title = Text::default());
        }
        if rows.len() == MOST {
            left_out += 1;
            continue;
        }
        let value = match subjects {
            [subject] => subject.summary.figures(case).map(Figures::in_words),
            _ => None,
        };
        let name = case.to_string();
        let name = name.strip_prefix(&format!("{suite}/")).unwrap_or(&name);
        rows.push(Row { name: Text::label(&plainly(name)), value: value.unwrap_or_default().into(), marks });
    }
    if !is_comparison && rows.len() == 1 {
        // One dot compares with nothing.
        return None;
    }
    let marks = rows.iter().flat_map(|row| &row.marks);
    let axis = Axis::of_times(reached(marks).into_iter(), None)?;
    let mut description =
        "A sign is the median, the band around it its 95 % CI, the stroke to its left the min; the axis \
         is logarithmic. The table of this suite has the numbers."
            .to_owned();
    if left_out > 0 {
        description.push_str(&format!(" {left_out} more cases are in the table alone."));
    }
    Some(Figure {
        title: format!("{suite}: case by case").into(),
        description: description.into(),
        keys: keys(subjects),
        panels: vec![Drawing::Dots(Dots { axis, rows, strips: Vec::new(), is_by_environment: true }).into()],
        ..Figure::default()
    })
}

/// The values that an axis of marks covers: all medians, and mins within a tenth of the least median. A sample near zero,
/// from which the empty loop was subtracted, would add decades in which nothing is.
pub fn reached<'a>(marks: impl Iterator<Item = &'a Mark> + Clone) -> Vec<f64> {
    let least = marks.clone().map(|mark| mark.at).fold(f64::INFINITY, f64::min);
    marks.flat_map(|mark| [mark.at, mark.min.map_or(mark.at, |floor| floor.max(least / 10.0))]).collect()
}

/// `seccomp, instructions=32` for `seccomp{instructions=32}`.
fn plainly(case: &str) -> String {
    case.replace('{', ", ").replace('}', "")
}

/// The common parameters of two cases of which one shares its lines: pages, order, KiB.
type Key3 = (String, String, u64);

/// Stores to lines that another core stores to as well, compared with stores to other lines.
pub fn sharing(subjects: &[Subject]) -> Option<Figure> {
    let found: Vec<_> = subjects.iter().map(pairs_of).collect();
    let marks = found.iter().flat_map(|rows| rows.iter().flat_map(|row| &row.marks));
    let axis = Axis::of_times(marks.map(|mark| mark.at), None)?;
    let draw = |subject: &Subject| {
        let rows = found.get(subject.look)?.clone();
        (!rows.is_empty()).then(|| {
            Drawing::Dots(Dots { axis: axis.clone(), rows, strips: Vec::new(), is_by_environment: false })
        })
    };
    let key = |look, name: &str| Key { sign: Sign::Look(look), name: name.into() };
    Some(Figure {
        title: "memory/thrash: a store where another core stores to the same lines".into(),
        description: "Nanoseconds a line, by how much memory is gone through, in which order and on which pages. The distance of \
                      the two signs is the latency of sharing. The table of this suite has the figures."
            .into(),
        keys: vec![key(0, "other lines"), key(1, "the same lines")],
        panels: panels(subjects, draw),
        ..Figure::default()
    })
}

fn pairs_of(subject: &Subject) -> Vec<Row> {
    let mut pairs: BTreeMap<Key3, Vec<_>> = BTreeMap::new();
    let drawn =
        subject.summary.measured().filter(|(case, figures)| case.benchmark == THRASH && is_drawn(figures));
    for (case, figures) in drawn {
        let text = |name: &str| case.word(name).unwrap_or_default().to_owned();
        let Some(kib) = case.number("kib") else { continue };
        let is_shared = case.params.get("shared") == Some(&ParamValue::Flag(true));
        let pair = pairs.entry((text("page"), text("order"), kib)).or_default();
        let words = figures.in_words();
        pair.push((Mark { title: Text::default(), ..mark(usize::from(is_shared), figures, "") }, words));
    }
    let named = |((page, order, kib), pair): (Key3, Vec<(Mark, String)>)| {
        let (marks, words): (Vec<Mark>, Vec<String>) = pair.into_iter().unzip();
        let words = match words.as_slice() {
            [one, other] => figures::from_to(one, other),
            words => words.concat(),
        };
        Row {
            name: Text::label(&format!("{} {order}, {page} pages", curve::kib_in_words(kib as f64))),
            value: words.into(),
            marks,
        }
    };
    pairs.into_iter().filter(|(_, marks)| marks.len() == 2).take(MOST).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_min_near_zero_adds_no_decades() {
        let mark = |at, floor| Mark { look: 0, at, interval: None, min: Some(floor), title: Text::default() };
        let marks = [mark(0.8, 0.001), mark(60.0, 50.0)];
        assert_eq!(reached(marks.iter()), [0.8, 0.08, 60.0, 50.0]);
    }
}
