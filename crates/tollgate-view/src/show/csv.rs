//! A run as comma-separated values, one line a case.

use tollgate_output::spreadsheet::{self, Reader};

use super::columns::{Shown, of_run};
use crate::summary::Summary;

/// A header and a line for each case; unknown values are empty. Characters that control a terminal are written out.
pub fn csv(summary: &Summary) -> String {
    spreadsheet::from_rows(
        &of_run(),
        summary.rows.iter().map(|row| Shown::new(summary, row)),
        Reader::Terminal,
    )
}
