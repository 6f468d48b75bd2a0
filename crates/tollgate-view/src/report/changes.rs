//! The rows that changed, a table for each comparison, with the possible causes: those of a proven cause stand above them.

use crate::page::Table;

use super::subject::Subject;
use crate::compare::columns::{self, Compared};
use crate::comparison::Comparison;

/// More rows are in the tables of the suites.
const MOST_ROWS: usize = 40;

pub fn tables(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Table> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let all = comparisons.iter().zip(others);
    all.filter_map(|(comparison, other)| table(&base.name, &other.name, comparison)).collect()
}

fn table(base: &str, other: &str, comparison: &Comparison) -> Option<Table> {
    let changed = comparison.changed();
    let more = match changed.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("; {more} more are in the tables of the suites"),
    };
    let how = if comparison.is_counted() {
        "in instructions, compared with"
    } else if comparison.is_alternated {
        "turn by turn with"
    } else {
        "compared with"
    };
    let caption = format!("What {other} changes, {how} {base}{more}");
    let rows = changed.iter().take(MOST_ROWS).map(|row| Compared::new(comparison, *row));
    let table = Table::from_rows(caption, &columns::of_page(comparison), rows);
    (!changed.is_empty()).then_some(Table { is_open: true, ..table })
}
