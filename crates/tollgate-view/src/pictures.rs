//! Pictures in the terminal, drawn from characters without colour. A picture that does not fit the terminal's width is
//! left out.

pub mod bill;
mod commands;
pub mod curve;
pub mod features;
pub mod matrix;
pub mod trade;

use tollgate_model::{Case, ParamValue};

use crate::summary::{Figures, Summary};

/// No picture fits fewer columns.
const NARROW: usize = 40;

/// Every picture of a run, each with a heading and an empty line after it.
pub fn of(summary: &Summary, width: usize) -> String {
    if width < NARROW {
        return String::new();
    }
    let pictures = [
        curve::of(summary, width),
        matrix::of(summary, width),
        trade::of(summary, width),
        features::of(summary, width),
        bill::of(summary, width),
        commands::of(summary, width),
    ];
    pictures.into_iter().flatten().map(|picture| format!("{picture}\n")).collect()
}

/// The rows of one benchmark above the detection limit, in the order of the run.
pub fn rows<'a, 'b>(
    summary: &'b Summary<'a>,
    benchmark: &'b str,
) -> impl Iterator<Item = (&'a Case, &'b Figures<'a>)> + 'b {
    let of_benchmark = move |case: &Case| case.benchmark == benchmark;
    let is_usable = |figures: &Figures| figures.is_estimate() && figures.below.is_none();
    summary.measured().filter(move |(case, figures)| of_benchmark(case) && is_usable(figures))
}

/// A parameter that is a number.
pub fn number(case: &Case, name: &str) -> Option<u64> {
    match case.params.get(name) {
        Some(ParamValue::Number(number)) => Some(*number),
        _ => None,
    }
}

/// A parameter that is a word.
pub fn word<'a>(case: &'a Case, name: &str) -> Option<&'a str> {
    match case.params.get(name) {
        Some(ParamValue::Word(word)) => Some(word),
        _ => None,
    }
}
