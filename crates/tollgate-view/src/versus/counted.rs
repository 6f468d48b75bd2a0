//! Commands whose instructions were counted: a table of counts, and what each other command has more or fewer than the first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use tollgate_engine::session::{FunctionCount, UNASKED};
use tollgate_model::versus::{
    CALLS, COUNTED, FAULTS, FIRST, INSTRUCTIONS, ITERATIONS, KERNEL_INSTRUCTIONS, TICKS, USER_INSTRUCTIONS,
};
use tollgate_model::{Case, Run};
use tollgate_output::figures::{self, thousands};
use tollgate_output::table::{Look, Table, heading, paragraph};
use tollgate_output::value::NONE;

use super::cells::{self, Cell};
use crate::comparison::{Comparison, Row};
use crate::counts;
use crate::session::Session;
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
        let adds = signed(adds);
        let verdict = counts::verdict(row.result.verdict, true);
        let is_different = row.result.verdict.is_difference();
        let look = if is_different { Look::Coloured } else { Look::Plain };
        let change = counts::change(row).unwrap_or_else(|| NONE.to_owned());
        table.row(look, &[name.to_owned(), whole(sides[0]), whole(sides[1]), adds, change, verdict], &[]);
    }
    heading(&format!("{other} compared with {base}"), width) + &table.lines(Some(width), false)
}

/// `+12`, `-12`, and no figure for none.
fn signed(adds: f64) -> String {
    let sign = if adds < 0.0 { "-" } else { "+" };
    if adds == 0.0 { NONE.to_owned() } else { format!("{sign}{}", whole(adds.abs())) }
}

fn whole(count: f64) -> String {
    thousands(&format!("{count:.0}"))
}

/// The kernel's functions of one logged execution of each command, with what the others have more or fewer than the first: the largest, or
/// with `all` all of them. The lists are those of the session's members.
pub fn functions(session: &Session, lists: &[Vec<FunctionCount>], all: bool, width: usize) -> String {
    const MOST: usize = 20;
    let cells = cells::all(session);
    let mut counts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (at, function) in
        lists.iter().enumerate().flat_map(|(at, list)| list.iter().map(move |one| (at, one)))
    {
        let name = function.name.as_deref().unwrap_or(PROGRAM);
        counts.entry(name).or_insert_with(|| vec![0; lists.len()])[at] += function.instructions;
    }
    let mut rows: Vec<(&str, Vec<u64>)> = counts.into_iter().collect();
    let difference =
        |counts: &[u64]| counts.iter().map(|&count| count.abs_diff(counts[0])).max().unwrap_or(0);
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse((difference(counts), counts[0])));
    let labels = cells.iter().map(|cell| Cow::Owned(cell.label.clone()));
    let adds = (lists.len() == 2).then_some(Cow::Borrowed("adds"));
    let header = [Cow::Borrowed("function")].into_iter().chain(labels).chain(adds).collect();
    let mut table = Table::of_columns(header);
    let shown = if all { rows.len() } else { MOST.min(rows.len()) };
    for (name, counts) in &rows[..shown] {
        let adds = (counts.len() == 2).then(|| signed(counts[1] as f64 - counts[0] as f64));
        let counts = counts.iter().map(|count| thousands(&count.to_string()));
        let row: Vec<String> = std::iter::once((*name).to_owned()).chain(counts).chain(adds).collect();
        table.row(Look::Plain, &row, &[]);
    }
    let left = rows.len() - shown;
    let more = if left > 0 {
        format!("{} more with --all. ", figures::count(left, "function", "functions"))
    } else {
        String::new()
    };
    let said = format!(
        "{more}Of one logged execution, iterations of rep among them, by the guest's /proc/kallsyms."
    );
    format!(
        "\n{}{}{}",
        heading("By function of the kernel", width),
        table.lines(Some(width), false),
        paragraph(&said, width, "")
    )
}

/// Instructions of programs, in a table of functions.
const PROGRAM: &str = "user space";

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
    let calls =
        why_not(run, CALLS).filter(|why| *why != UNASKED).map(|why| format!("no system calls: {why}"));
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

/// A count of a command.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(super) enum CountRecord {
    /// It was counted.
    Counted {
        /// The median.
        median: f64,
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
        /// That of each execution, in their order.
        samples: Vec<f64>,
    },
    /// It was not.
    Not {
        /// Why not.
        why_not: Option<String>,
    },
}

/// The counts of a command for a document, by case; None where none was counted.
pub(super) fn record(cell: &Cell) -> Option<BTreeMap<String, CountRecord>> {
    cell.figures(INSTRUCTIONS)?;
    let field = |case: &&str| {
        let name = case.strip_prefix("versus/").unwrap_or(case).replace('-', "_");
        let value = match cell.figures(case) {
            Some(figures) => CountRecord::Counted {
                median: figures.estimate.median,
                min: figures.estimate.min,
                max: figures.estimate.max,
                samples: figures.measured.samples.clone(),
            },
            None => CountRecord::Not { why_not: why_not(cell.member.summary.run, case).map(str::to_owned) },
        };
        (name, value)
    };
    Some(COUNTED.iter().map(field).collect())
}
