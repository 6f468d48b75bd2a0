//! The rows that changed between environments that took turns, what each adds, and how far its turns correlate; and those of
//! counts of instructions. The tables of facts have their causes.

use tollgate_output::figures;

use super::subject::Subject;
use crate::comparison::{Comparison, Row};
use crate::counts;
use crate::page::{Table, Text};

/// More rows are in the tables of the suites.
const MOST_ROWS: usize = 40;

const HEAD: [&str; 7] = ["case", "base", "this", "ratio", "95 % CI", "adds", "correlation"];

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
    let shown = changed.iter().take(MOST_ROWS);
    let (how, head, rows) = match comparison.is_counted() {
        true => (
            "in instructions, compared with",
            HEAD_OF_COUNTS.as_slice(),
            shown.map(|row| of_count(row)).collect(),
        ),
        false => ("turn by turn with", HEAD.as_slice(), shown.map(|row| cells(row)).collect()),
    };
    let caption = format!("What {other} changes, {how} {base}{more}");
    let table = Table { rows, is_open: true, ..Table::new(Text::new(&caption), head.iter().copied()) };
    (!changed.is_empty()).then_some(table)
}

const HEAD_OF_COUNTS: [&str; 5] = ["case", "base", "this", "adds", "change"];

fn of_count(row: &Row) -> Vec<Text> {
    let or_none = |text: Option<String>| Text::from(text.unwrap_or_else(|| "–".to_owned()));
    let count = |of: Option<f64>| or_none(of.map(|of| counts::count(of, row.base.unit)));
    vec![
        Text::label(&row.case().to_string()),
        count(row.result.base),
        count(row.result.other),
        or_none(counts::adds(row)),
        or_none(counts::change(row)),
    ]
}

fn cells(row: &Row) -> Vec<Text> {
    let or_none = |text: Option<String>| Text::from(text.unwrap_or_else(|| "–".to_owned()));
    let result = &row.result;
    let found = result.alternation.as_ref();
    vec![
        Text::label(&row.case().to_string()),
        or_none(result.base.map(|base| figures::estimate(base, row.base.unit))),
        or_none(result.other.map(|other| figures::estimate(other, row.other.unit))),
        or_none(row.ratio().map(figures::ratio)),
        or_none(result.interval.map(|interval| figures::ratio_span(interval.low, interval.high))),
        or_none(row.adds().map(|adds| figures::difference(adds, row.base.unit))),
        or_none(found.and_then(|found| Some(format!("{:.2}", found.correlation?)))),
    ]
}
