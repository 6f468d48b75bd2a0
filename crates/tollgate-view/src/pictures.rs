//! Pictures in the terminal, drawn from characters without colour. A picture that does not fit the terminal's width is left out.

mod commands;
pub mod curve;
pub mod features;
pub mod matrix;
pub mod sharing;
pub mod trade;

use crate::summary::Summary;

/// No picture fits fewer columns.
const NARROW: usize = 40;

/// Every picture of a run, each with a heading and an empty line after it.
pub fn all(summary: &Summary, width: usize) -> String {
    if width < NARROW {
        return String::new();
    }
    let pictures = [
        curve::picture(summary, width),
        sharing::picture(summary, width),
        matrix::picture(summary, width),
        trade::picture(summary, width),
        features::picture(summary, width),
        commands::picture(summary, width),
    ];
    pictures.into_iter().flatten().map(|picture| format!("{picture}\n")).collect()
}
