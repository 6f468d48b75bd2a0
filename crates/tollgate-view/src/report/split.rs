//! What the differences of commands consist of: the parts of the real time, and the system calls.

use tollgate_model::traced::blame::Part;
use tollgate_output::figures;

use super::subject::Subject;
use crate::comparison::Comparison;
use crate::page::{Table, Text};
use crate::trace::blame::in_words_of_part;
use crate::trace::text::{difference, signed};
use crate::versus::split::{Line, Split};

/// Calls of a table.
const MOST_CALLS: usize = 20;

/// Two tables of each comparison of commands that were traced.
pub fn tables(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Table> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let of_commands = comparisons.iter().zip(others).filter(|(comparison, _)| comparison.is_of_commands());
    let tables = of_commands
        .filter_map(|(comparison, other)| Some(both(&base.name, &other.name, &Split::of(comparison)?)));
    tables.flatten().collect()
}

/// The cells of both: text alone.
pub fn rows(split: &Split) -> [Vec<[String; 5]>; 2] {
    let row = |name: &str, line: Line, calls: String| {
        let [base, other] = line.sides.map(|ns| if ns == 0 { "0".to_owned() } else { signed(ns as f64) });
        [name.to_owned(), base, other, difference(line.difference), calls]
    };
    let last = |rest: i64| {
        let name = "rest: tracing, and medians, which do not sum".to_owned();
        let rest = [name, String::new(), String::new(), difference(rest), String::new()];
        [rest, row("real, timed", split.timed, String::new())]
    };
    let parts = split.parts.iter().filter(|(_, line)| *line != Line::default());
    let parts =
        parts.map(|(part, line)| row(in_words_of_part(*part, split.has_ptrace()), *line, String::new()));
    let parts = parts.chain(last(split.rest_of_parts())).collect();
    let differ = split.calls.iter().take_while(|call| call.line.difference != 0).count();
    let (shown, others) = split.calls.split_at(differ.min(MOST_CALLS));
    let calls = shown.iter().map(|call| row(&call.name, call.line, call.numbers()));
    let sum = others.iter().map(|call| call.line.difference).fold(0, i64::saturating_add);
    let others = (sum != 0).then(|| {
        let name = figures::count(others.len(), "other", "others");
        [name, String::new(), String::new(), difference(sum), String::new()]
    });
    let outside = row("outside of calls", split.outside, String::new());
    let beside = [(Part::Runqueue, split.runqueue), (Part::Unaccounted, split.unaccounted)];
    let beside = beside.into_iter().filter(|(_, line)| *line != Line::default());
    let beside = beside.map(|(part, line)| row(in_words_of_part(part, false), line, String::new()));
    let calls =
        calls.chain(others).chain([outside]).chain(beside).chain(last(split.rest_of_calls())).collect();
    [parts, calls]
}

fn both(base: &str, other: &str, split: &Split) -> [Table; 2] {
    let [parts, calls] = rows(split);
    let pairs = figures::count(split.pairs, "pair of traced executions", "pairs of traced executions");
    let table = |caption: &str, head: &[&str], rows: Vec<[String; 5]>, is_open| Table {
        rows: rows
            .into_iter()
            .map(|row| row.iter().take(head.len()).map(|cell| Text::label(cell)).collect())
            .collect(),
        is_open,
        ..Table::new(Text::new(caption), head.iter().copied())
    };
    let caption =
        format!("What the real time of {other} less that of {base} consists of: medians of {pairs}");
    let calls_caption = format!("The same by system call. {}", split.method);
    [
        table(&caption, &["real time by", "base", "other", "difference"], parts, true),
        table(&calls_caption, &["call", "base", "other", "difference", "calls"], calls, true),
    ]
}
