//! The rows that changed between environments that took turns, what each adds, and how far its turns correlate; and those of
//! counts of instructions. The tables of facts have their causes.

use crate::page::Table;

use super::subject::Subject;
use crate::compare::columns::{self, Compared};
use crate::comparison::Comparison;

/// More rows are in the tables of the suites.
const MOST_ROWS: usize = 40;

/// A table of each comparison that was alternated, or is of counts, and has changed rows.
pub fn tables(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Table> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let has_table = |comparison: &Comparison| comparison.is_alternated || comparison.is_counted();
    let shown = comparisons.iter().zip(others).filter(|(comparison, _)| has_table(comparison));
    shown.filter_map(|(comparison, other)| table(&base.name, &other.name, comparison)).collect()
}

fn table(base: &str, other: &str, comparison: &Comparison) -> Option<Table> {
    let changed = comparison.changed();
    let more = match changed.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("; {more} more are in the tables of the suites"),
    };
    let how = match comparison.is_counted() {
        true => "in instructions, compared with",
        false => "turn by turn with",
    };
    let caption = format!("What {other} changes, {how} {base}{more}");
    let rows = changed.iter().take(MOST_ROWS).map(|row| Compared::new(comparison, *row));
    let table = Table::from_rows(caption, &columns::of_page(comparison), rows);
    (!changed.is_empty()).then_some(Table { is_open: true, ..table })
}
