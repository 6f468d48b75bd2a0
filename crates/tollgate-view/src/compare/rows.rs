//! The rows of a comparison that are shown, their order, and their tables.

use std::collections::HashSet;

use tollgate_model::Case;
use tollgate_model::compare::{FactDifference, NotCompared};
use tollgate_output::figures;
use tollgate_output::table::Table;

use super::causes::Causes;
use super::columns::{self, Choice, Compared};
use super::need::{self, Need};
use crate::comparison::{ComparedRow, Comparison};
use crate::summary::{Figures, Summary};

const MOST_CAUSES: usize = 3;

/// The changed rows that fit: those of the first screen's operations first, then the largest differences. They are ordered by
/// size, calls with number -1 last if one side has a filter.
pub(super) fn shown<'a, 'b>(
    comparison: &'b Comparison<'a>,
    headlines: &HashSet<String>,
    room: usize,
) -> Vec<&'b ComparedRow<'a>> {
    let is_filtered = has_filter(comparison);
    let is_last = |row: &&ComparedRow| is_filtered && is_refused(row.case());
    let mut changed = comparison.changed();
    // Sorting leaves rows of equal keys in the order of their sizes.
    changed.sort_by_key(is_last);
    let mut order: Vec<usize> = (0..changed.len()).collect();
    if changed.len() > room {
        order.sort_by_key(|at| {
            let case = changed[*at].case();
            let is_real = is_filtered && case.benchmark == REAL;
            (is_last(&changed[*at]), !is_real, !headlines.contains(&case.to_string()))
        });
        order.truncate(room);
        order.sort_unstable();
    }
    order.into_iter().map(|at| changed[at]).collect()
}

pub(super) fn has_filter(comparison: &Comparison) -> bool {
    comparison.facts.iter().any(|fact| fact.name == "seccomp.filters")
}

/// Whether it is a call with number -1: a filter's cache of verdicts has only the numbers of calls (kernel/seccomp.c,
/// seccomp_cache_check_allow()).
pub(super) fn is_refused(case: &Case) -> bool {
    tollgate_suites::find(&case.benchmark).is_some_and(|benchmark| benchmark.operation.contains("refuse"))
}

/// A call that programs make. If one side has a filter, it is the first to be chosen.
pub(super) const REAL: &str = "entry/syscall-getpid";

pub(super) fn table<'c>(
    comparison: &'c Comparison<'c>,
    rows: &[&'c ComparedRow<'c>],
    causes: &Causes,
    choice: Choice,
) -> Table {
    // Numbers that are the same on every line say nothing.
    let numbers: Vec<String> = rows.iter().map(|row| causes.numbers(comparison, row)).collect();
    let is_numbered = comparison.proven.is_none() && numbers.windows(2).any(|pair| pair[0] != pair[1]);
    let columns = if is_numbered {
        columns::of_numbered(comparison, choice)
    } else {
        columns::of_table(comparison, choice)
    };
    let row = |(row, numbers): (&&'c ComparedRow<'c>, String)| {
        (Compared::new(comparison, *row).numbered(numbers), None)
    };
    let dispensable = columns::dispensable(&columns);
    Table::from_rows(&columns, rows.iter().zip(numbers).map(row)).with_dispensable(dispensable)
}

pub(super) fn whole<'c>(comparison: &'c Comparison<'c>, choice: Choice) -> Table {
    let rows = comparison.in_order().into_iter();
    let rows = rows.map(|row| (Compared::new(comparison, row), remark(comparison, row)));
    let columns = columns::of_whole(comparison, choice);
    let dispensable = columns::dispensable(&columns);
    Table::from_rows(&columns, rows).with_dispensable(dispensable)
}

fn remark(comparison: &Comparison, row: &ComparedRow) -> Option<String> {
    if row.result.verdict.is_difference() {
        // A sentence below the rows names it.
        return causes(comparison, row).filter(|_| comparison.proven.is_none());
    }
    let Some(need) = Need::of(comparison, row) else { return row.result.why.clone() };
    let command = need::command(comparison, std::iter::once(&need));
    let least = row.result.detectable().filter(|_| !comparison.is_alternated && need.half.is_some());
    Some(match (command, least) {
        (Some(command), _) => format!("{}; more time: {command}", need.found),
        (None, Some(least)) => {
            format!("{}; it hides changes below {} ×", need.found, figures::ratio(least))
        }
        (None, None) => need.found,
    })
}

fn causes(comparison: &Comparison, row: &ComparedRow) -> Option<String> {
    let names: Vec<&str> = comparison.causes(row).map(|fact| fact.name.as_str()).collect();
    let (named, more) = names.split_at(names.len().min(MOST_CAUSES));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    match named {
        [] => {
            let is_any = comparison.facts.iter().any(FactDifference::is_change);
            is_any.then(|| "no fact that changed affects it".to_owned())
        }
        [cause] => Some(format!("possible cause: {cause}")),
        several => Some(format!("possible causes: {}{more}", several.join(", "))),
    }
}

/// The figures of cases that one of the two counted and the other timed, at most this many, and their number: those of the first
/// screen's operations before others.
pub(super) fn beside(comparison: &Comparison, headlines: &HashSet<String>, room: usize) -> (Table, usize) {
    let mut rows: Vec<&NotCompared> = comparison.not_compared.iter().collect();
    if rows.len() > room {
        rows.sort_by_key(|row| !headlines.contains(&row.case.to_string()));
        rows.truncate(room);
    }
    let sides = [comparison.base, comparison.other].map(Summary::of);
    let row = |row: &&NotCompared| {
        let figure = |side: &Summary| side.figures(&row.case).map(Figures::in_words);
        (row.case.to_string(), sides.each_ref().map(figure))
    };
    let table = Table::of_cells(["benchmark", "base", "other"], rows.iter().map(row));
    (table, rows.len())
}
