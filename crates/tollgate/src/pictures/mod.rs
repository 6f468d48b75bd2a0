//! Pictures in the terminal: what a table of many rows does not show at a glance. Each is of characters that tell
//! apart what colour would, and is left out where the terminal has no room for it.

pub mod bill;
mod commands;
pub mod curve;
pub mod features;
pub mod market;
pub mod matrix;

use tollgate_model::{Case, ParamValue, Run};

use crate::prices::{Figures, Prices};

/// A terminal with fewer columns has no room for any of them.
const NARROW: usize = 40;

/// Every picture that these prices give, each with a heading and a line of space before it.
pub fn of(run: &Run, prices: &Prices, width: usize) -> String {
    if width < NARROW {
        return String::new();
    }
    let pictures = [
        curve::of(run, prices, width),
        matrix::of(prices, width),
        market::of(prices, width),
        features::of(prices, width),
        bill::of(prices, width),
        commands::of(prices, width),
    ];
    pictures.into_iter().flatten().map(|picture| format!("{picture}\n")).collect()
}

/// The prices of one probe that are to be built on, in the order of the run.
pub fn rows<'a, 'b>(
    prices: &'b Prices<'a>,
    probe: &'b str,
) -> impl Iterator<Item = (&'a Case, &'b Figures<'a>)> + 'b {
    let of_probe = move |case: &Case| case.probe == probe;
    let to_build_on = |figures: &Figures| figures.is_price() && figures.below.is_none();
    prices.measured().filter(move |(case, figures)| of_probe(case) && to_build_on(figures))
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
