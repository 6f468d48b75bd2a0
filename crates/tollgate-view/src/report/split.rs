//! The parts of the differences of commands: the parts of the real time, and the system calls.

use tollgate_output::figures;

use super::subject::Subject;
use crate::comparison::Comparison;
use crate::page::Table;
use crate::versus::lines::{Lines, REST};

pub const MOST_CALLS: usize = 20;

pub fn tables(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Table> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let of_commands = comparisons.iter().zip(others).filter(|(comparison, _)| comparison.is_of_commands());
    let tables = of_commands
        .filter_map(|(comparison, other)| Some(both(&base.name, &other.name, &Lines::of(comparison)?)));
    tables.flatten().collect()
}

fn both(base: &str, other: &str, lines: &Lines) -> [Table; 2] {
    let pairs = figures::count(lines.split.pairs, "pair of traced executions", "pairs of traced executions");
    let caption = format!("Real time of {other} less that of {base}, by part: medians of {pairs}");
    let of_calls = format!("The same by system call. {} {REST}", lines.split.method);
    [
        Table::from_rows(caption, &lines.of_parts(), lines.parts()),
        Table::from_rows(of_calls, &lines.of_calls(), lines.calls(MOST_CALLS)),
    ]
    .map(|table| Table { is_open: true, ..table })
}
