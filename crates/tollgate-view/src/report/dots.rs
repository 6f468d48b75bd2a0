//! Estimates of a suite as marks, one row per case.

use tollgate_model::{Case, Unit};
use tollgate_output::figures;

use super::curves::CREATIONS;
use super::panels::keys;
use super::subject::{Subject, figures_of_all};
use super::{curves, ipc, ruler, scaling};
use crate::page::{Drawing, Figure, Mark, PictureRow, Rows, Text};
use crate::pictures::{curve, matrix, trade};
use crate::rules::THRASH;

/// With more rows it is not a picture.
const MOST: usize = 12;

/// Benchmarks with a picture of their own, or without an estimate to draw.
const ELSEWHERE: [&str; 6] =
    [curve::BENCHMARK, curves::BANDWIDTH, trade::BENCHMARK, THRASH, "locks/preempted", "locks/killed"];

pub fn figure(subjects: &[Subject], suite: &str, cases: &[&Case]) -> Option<Figure> {
    let is_elsewhere = |case: &Case| {
        let benchmark = case.benchmark.as_str();
        let is_of_matrix = benchmark == matrix::BENCHMARK && super::matrix::is_drawn(subjects);
        ELSEWHERE.contains(&benchmark)
            || ipc::MESSAGES.contains(&benchmark)
            || case.suite() == scaling::SUITE
            || CREATIONS.contains(&benchmark)
            || is_of_matrix
    };
    let is_comparison = subjects.len() > 1;
    let overview: Vec<&Case> = subjects
        .iter()
        .flat_map(|subject| ruler::headlines(&subject.summary))
        .map(|(_, case)| case)
        .collect();
    let mut rows = Vec::new();
    let mut left_out = 0;
    for case in cases.iter().filter(|case| !is_elsewhere(case) && !overview.contains(case)) {
        let marks: Vec<Mark> = subjects.iter().filter_map(|subject| subject.mark(case)).collect();
        if marks.is_empty() && !is_below(subjects, case) {
            continue;
        }
        if rows.len() == MOST {
            left_out += 1;
            continue;
        }
        let name = case.to_string();
        let name = name.strip_prefix(&format!("{suite}/")).unwrap_or(&name);
        let value = figures_of_all(subjects, case);
        rows.push(PictureRow { name: Text::label(&plainly(name)), value, verdict: None, marks });
    }
    if !is_comparison && rows.len() == 1 {
        // One dot compares with nothing.
        return None;
    }
    let rows = Rows::of_times(rows)?;
    let more = figures::count(left_out, "more case is", "more cases are");
    let description = if left_out > 0 { format!("{more} in the table below.") } else { String::new() };
    Some(Figure {
        title: format!("{suite}: case by case").into(),
        description: description.into(),
        keys: keys(subjects),
        panels: vec![Drawing::Rows(rows).into()],
        ..Figure::default()
    })
}

/// Whether it is a time below the detection limit, which has a row but no mark.
fn is_below(subjects: &[Subject], case: &Case) -> bool {
    let found = subjects.iter().filter_map(|subject| subject.summary.figures(case));
    found.into_iter().any(|figures| figures.below.is_some() && figures.measured.unit == Unit::Nanoseconds)
}

/// `seccomp, instructions=32` for `seccomp{instructions=32}`.
fn plainly(case: &str) -> String {
    case.replace('{', ", ").replace('}', "")
}
