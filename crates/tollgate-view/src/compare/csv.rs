//! Comparisons as comma-separated values, one line per row, one run after the other.

use tollgate_output::spreadsheet::{self, Reader};

use super::columns::{Compared, Sides, columns};
use crate::comparison::Comparison;

/// A header and a line for each case that both sides of a comparison measured; unknown values are empty. Characters that control
/// a terminal are written out.
pub fn csv<'a>(all: impl Iterator<Item = (Sides<'a>, &'a Comparison<'a>)>) -> String {
    let all: Vec<(Sides, &Comparison)> = all.collect();
    let rows = all.iter().flat_map(|(sides, comparison)| {
        comparison.rows.iter().map(move |row| Compared::new(comparison, row).between(sides))
    });
    spreadsheet::from_rows(&columns(), rows, Reader::Terminal)
}
