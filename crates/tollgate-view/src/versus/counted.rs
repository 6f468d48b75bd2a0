//! Commands whose instructions were counted: a table of counts, and what each other command has more or fewer than the first.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use tollgate_model::versus::{
    CALLS, COUNTED, FAULTS, FIRST, INSTRUCTIONS, ITERATIONS, KERNEL_INSTRUCTIONS, TICKS, USER_INSTRUCTIONS,
};
use tollgate_model::{Case, Run};
use tollgate_output::figures::{self, thousands};
use tollgate_output::table::{Look, Table, heading};
use tollgate_output::value::NONE;

use super::cells::Cell;
use crate::comparison::{Comparison, Row};
use crate::counts;
use crate::summary::Figures;

/// Columns of the table, by their cases.
const COLUMNS: [(&str, &str); 8] = [
    ("total", INSTRUCTIONS),
    ("user", USER_INSTRUCTIONS),
    ("kernel", KERNEL_INSTRUCTIONS),
    ("rep", ITERATIONS),
    ("first", FIRST),
    ("calls", CALLS),
    ("faults", FAULTS),
    ("ticks", TICKS),
];

/// What the figures are.
pub(super) const METHOD: &str = "Counted: instructions of an execution by QEMU's translator (-icount), the same at each boot. Each command has a boot of its own.";

/// Whether instructions were counted.
pub(super) fn is_counted(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| cell.figures(INSTRUCTIONS).is_some())
}

/// The row of instructions.
pub(crate) fn row<'c, 'a>(comparison: &'c Comparison<'a>) -> Option<&'c Row<'a>> {
    comparison.row(&Case::plain(INSTRUCTIONS))
}

/// The counts of each command.
pub(super) fn table(cells: &[Cell], width: usize) -> String {
    let mut header = vec!["counted"];
    header.extend(COLUMNS.map(|(name, _)| name));
    let mut table = Table::new(&header);
    for cell in cells {
        let median = |case: &str| {
            let figures = cell.figures(case)?;
            Some(whole(figures.estimate.median))
        };
        let counts = COLUMNS.map(|(_, case)| median(case).unwrap_or_else(|| NONE.to_owned()));
        let row: Vec<String> = std::iter::once(cell.label.clone()).chain(counts).collect();
        table.row(Look::Plain, &row, &[]);
    }
    table.lines(Some(width), false)
}

/// What another command has more or fewer than the first.
pub(super) fn compared(base: &str, other: &str, comparison: &Comparison, width: usize) -> String {
    let names = [base, other].map(|name| Cow::Owned(name.to_owned()));
    let header = [Cow::Borrowed("")].into_iter().chain(names);
    let header = header.chain(["adds", "change", "verdict"].map(Cow::Borrowed)).collect();
    let mut table = Table::of_columns(header);
    for (name, case) in COLUMNS {
        let Some(row) = comparison.row(&Case::plain(case)) else { continue };
        let sides = [row.result.base, row.result.other].map(Option::unwrap_or_default);
        if case == TICKS && sides == [0.0; 2] {
            continue;
        }
        let adds = sides[1] - sides[0];
        let sign = if adds < 0.0 { "-" } else { "+" };
        let adds = if adds == 0.0 { NONE.to_owned() } else { format!("{sign}{}", whole(adds.abs())) };
        let verdict = counts::verdict(row.result.verdict, true);
        let is_different = row.result.verdict.is_difference();
        let look = if is_different { Look::Coloured } else { Look::Plain };
        let change = counts::change(row).unwrap_or_else(|| NONE.to_owned());
        table.row(look, &[name.to_owned(), whole(sides[0]), whole(sides[1]), adds, change, verdict], &[]);
    }
    heading(&format!("{other} compared with {base}"), width) + &table.lines(Some(width), false)
}

fn whole(count: f64) -> String {
    thousands(&format!("{count:.0}"))
}

/// What is said beside the counts of a command: the spread of its executions, its ticks, and what is not known of it.
pub(super) fn notes(cell: &Cell) -> Vec<String> {
    let Some(total) = cell.figures(INSTRUCTIONS) else { return Vec::new() };
    let spread = (!total.is_exact()).then(|| spread(total));
    let ticks = cell.figures(TICKS).map(|ticks| ticks.estimate.max).filter(|ticks| *ticks > 0.0);
    let ticks = ticks.map(|ticks| {
        let ticks = figures::count(ticks as usize, "tick", "ticks");
        format!("an execution has up to {ticks} of the kernel, whose instructions are in its total")
    });
    let run = cell.member.summary.run;
    let split = why_not(run, USER_INSTRUCTIONS).map(|why| format!("no split into user and kernel: {why}"));
    let calls = why_not(run, CALLS).map(|why| format!("no system calls: {why}"));
    [spread, ticks, split, calls].into_iter().flatten().collect()
}

fn spread(total: &Figures) -> String {
    let of = &total.estimate;
    let range = counts::batches(total).unwrap_or_default();
    let share = 100.0 * (of.max - of.min) / of.median.max(1.0);
    format!("executions of one boot differ: {range} ({share:.2} %), the same ones at each boot")
}

fn why_not<'r>(run: &'r Run, case: &str) -> Option<&'r str> {
    run.measurement(&Case::plain(case))?.outcome.why()
}

/// The counts of a command for a document, by case; None where none was counted.
pub(super) fn record(cell: &Cell) -> Option<Value> {
    cell.figures(INSTRUCTIONS)?;
    let field = |case: &&str| {
        let name = case.strip_prefix("versus/").unwrap_or(case).replace('-', "_");
        let value = match cell.figures(case) {
            Some(figures) => json!({
                "median": figures.estimate.median,
                "min": figures.estimate.min,
                "max": figures.estimate.max,
                "samples": figures.measured.samples,
            }),
            None => json!({ "why_not": why_not(cell.member.summary.run, case) }),
        };
        (name, value)
    };
    Some(Value::Object(COUNTED.iter().map(field).collect::<Map<String, Value>>()))
}
