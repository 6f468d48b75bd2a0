//! Pictures in the terminal: what a table of many rows does not show at a glance. Each is of characters that tell
//! apart what colour would, and is left out where the terminal has no room for it.

pub mod bill;
mod commands;
pub mod curve;
pub mod features;
pub mod matrix;
pub mod trade;

use tollgate_model::{Case, ParamValue, Run};

use crate::estimates::{Estimates, Figures};

/// A terminal with fewer columns has no room for any of them.
const NARROW: usize = 40;

/// Every picture that these prices give, each with a heading and a line of space before it.
pub fn of(run: &Run, estimates: &Estimates, width: usize) -> String {
    if width < NARROW {
        return String::new();
    }
    let pictures = [
        curve::of(run, estimates, width),
        matrix::of(estimates, width),
        trade::of(estimates, width),
        features::of(estimates, width),
        bill::of(estimates, width),
        commands::of(estimates, width),
    ];
    pictures.into_iter().flatten().map(|picture| format!("{picture}\n")).collect()
}

/// The prices of one benchmark that are to be built on, in the order of the run.
pub fn rows<'a, 'b>(
    estimates: &'b Estimates<'a>,
    benchmark: &'b str,
) -> impl Iterator<Item = (&'a Case, &'b Figures<'a>)> + 'b {
    let of_benchmark = move |case: &Case| case.benchmark == benchmark;
    let to_build_on = |figures: &Figures| figures.is_estimate() && figures.below.is_none();
    estimates.measured().filter(move |(case, figures)| of_benchmark(case) && to_build_on(figures))
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
