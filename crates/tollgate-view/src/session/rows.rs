//! The rows of a session's comparison, and what is said beneath them.

use std::collections::HashSet;

use tollgate_model::Case;
use tollgate_model::compare::{Verdict, margin};
use tollgate_model::sorting::Ordered as _;
use tollgate_output::figures;
use tollgate_output::table::Table;

use super::causes::Causes;
use crate::compare::columns::{self, Compared};
use crate::compare::need::{self, Need};
use crate::compare::processor;
use crate::comparison::{ComparedRow, Comparison};
use crate::{counts, facts};

/// The changed rows that have room: those of the first screen's operations first, then the largest differences. They are in the
/// order of their sizes, calls with number -1 last where one side has a filter.
pub(super) fn shown<'a, 'b>(
    comparison: &'b Comparison<'a>,
    headlines: &HashSet<String>,
    room: usize,
) -> Vec<&'b ComparedRow<'a>> {
    let is_filtered = has_filter(comparison);
    let is_last = |row: &&ComparedRow| is_filtered && is_refused(row.case());
    let mut changed = comparison.changed();
    // Sorting leaves rows of equal keys in the order of their sizes.
    changed.order_by_key(is_last);
    let mut order: Vec<usize> = (0..changed.len()).collect();
    if changed.len() > room {
        order.order_by_key(|at| {
            let case = changed[*at].case();
            let is_real = is_filtered && case.benchmark == REAL;
            (is_last(&changed[*at]), !is_real, !headlines.contains(&case.to_string()))
        });
        order.truncate(room);
        order.sort_unstable();
    }
    order.into_iter().map(|at| changed[at]).collect()
}

/// Whether one side has a filter of system calls that the other has not.
fn has_filter(comparison: &Comparison) -> bool {
    comparison.facts.iter().any(|fact| fact.name == "seccomp.filters")
}

/// Whether it is of calls with number -1: a filter's cache of verdicts has the numbers of calls alone (kernel/seccomp.c,
/// seccomp_cache_check_allow()).
fn is_refused(case: &Case) -> bool {
    tollgate_suites::find(&case.benchmark).is_some_and(|benchmark| benchmark.operation.contains("refuse"))
}

/// A call of programs, which leads where calls with number -1 do not.
const REAL: &str = "entry/syscall-getpid";

/// What a filter costs the calls of programs, where it differs.
fn of_filter(comparison: &Comparison) -> Option<String> {
    let is_shown = comparison.changed().iter().any(|row| is_refused(row.case()));
    let real = comparison
        .row(&Case::plain(REAL))
        .and_then(|row| Some(format!(": getpid pays {}", figures::difference(row.adds()?, row.base.unit))));
    let whose = facts::text(&comparison.other.facts, facts::FILTER);
    let whose = whose.map(|whose| format!(" The filter is {whose}."));
    (has_filter(comparison) && is_shown).then(|| {
        format!(
            "Calls with number -1, such as entry/syscall, are in no filter's cache of verdicts, and are its worst case{}.{}",
            real.unwrap_or_default(),
            whose.unwrap_or_default()
        )
    })
}

/// The table of a screen.
pub(super) fn table<'c>(
    comparison: &'c Comparison<'c>,
    rows: &[&'c ComparedRow<'c>],
    causes: &Causes,
) -> Table {
    // Numbers that are the same on every line say nothing.
    let numbers: Vec<String> = rows.iter().map(|row| causes.numbers(comparison, row)).collect();
    let is_numbered = comparison.proven.is_none() && numbers.windows(2).any(|pair| pair[0] != pair[1]);
    let row = |(row, numbers): (&&'c ComparedRow<'c>, String)| {
        (Compared::new(comparison, *row).numbered(numbers), None)
    };
    // Where there is no room for them, the list beneath says how many rows each reaches.
    Table::from_rows(&columns::of_screen(comparison, is_numbered), rows.iter().zip(numbers).map(row))
        .with_dispensable(usize::from(is_numbered))
}

/// The table of all rows: changed ones first, each with the correlation of its turns.
pub(super) fn whole<'c>(comparison: &'c Comparison<'c>) -> Table {
    let mut rows: Vec<&'c ComparedRow<'c>> = comparison.changed();
    for verdict in [Verdict::Inconclusive, Verdict::Same] {
        rows.extend(comparison.rows.iter().filter(|row| row.result.verdict == verdict));
    }
    let row = |row: &&'c ComparedRow<'c>| {
        let causes = comparison.cause_names(row);
        let causes = (!causes.is_empty() && comparison.proven.is_none())
            .then(|| format!("possible: {}", causes.join(", ")));
        (Compared::new(comparison, *row), causes.or_else(|| row.result.why.clone()))
    };
    let dispensable = usize::from(!comparison.is_counted());
    Table::from_rows(&columns::of_whole_screen(comparison), rows.iter().map(row))
        .with_dispensable(dispensable)
}

/// How many rows did not change, and what would decide the inconclusive ones.
pub(super) fn counts(comparison: &Comparison, hidden: usize, is_alone: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let of = |verdict: Verdict| comparison.rows.iter().filter(move |row| row.result.verdict == verdict);
    let half =
        |row: &ComparedRow| row.result.interval.map(|interval| (interval.high / interval.low).sqrt() - 1.0);
    let mut parts = Vec::new();
    if hidden > 0 {
        parts.push(format!("{hidden} more changed"));
    }
    let same = of(Verdict::Same).count();
    let widest = of(Verdict::Same).filter_map(half).max_by(f64::total_cmp);
    let within = match (comparison.is_alternated, widest) {
        (true, Some(widest)) => format!(
            " within {}, the widest interval ±{}",
            whole_percent(margin(comparison.asked)),
            figures::percent(widest)
        ),
        (true, None) => format!(" within {}", whole_percent(margin(comparison.asked))),
        (false, _) if comparison.is_counted() && comparison.asked > 0.0 => {
            format!(" within {}", whole_percent(comparison.asked))
        }
        (false, _) => String::new(),
    };
    parts.push(format!("{} the same{within}", figures::count(same, "row", "rows")));
    for (only, side) in [(&comparison.only_base, "base"), (&comparison.only_other, "other")] {
        if !only.is_empty() {
            let named = match only.as_slice() {
                [(case, _)] => format!(" ({case})"),
                _ => String::new(),
            };
            parts.push(format!("{} in the {side} only{named}", only.len()));
        }
    }
    if comparison.rows.is_empty() {
        parts.remove(0);
    }
    if !parts.is_empty() {
        lines.push(format!("{}.", parts.join("; ")));
    }
    lines.extend(of_filter(comparison));
    lines.extend(counts::not_compared(comparison));
    lines.extend(comparison.halves.as_ref().map(|halves| format!("{halves}.")));
    lines.extend(inconclusive(comparison, is_alone));
    lines.extend(processor::of_rows(comparison));
    lines
}

/// A share that was asked for: `1 %`.
fn whole_percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

/// The inconclusive rows: their number, their reasons, and the command that may decide them.
fn inconclusive(comparison: &Comparison, is_alone: bool) -> Option<String> {
    let needs: Vec<Need> = comparison.rows.iter().filter_map(Need::of).collect();
    if needs.is_empty() {
        return None;
    }
    let mut halves: Vec<f64> = needs.iter().filter_map(|need| need.half).collect();
    halves.order_by(f64::total_cmp);
    let span = match halves.as_slice() {
        [least, .., most] => Some(format!("±{} to ±{}", figures::percent(*least), figures::percent(*most))),
        [half] => Some(format!("±{}", figures::percent(*half))),
        [] => None,
    };
    let is_all = halves.len() == needs.len();
    let mut reasons: Vec<String> = span
        .map(|span| if is_all { span } else { format!("{} of {span}", halves.len()) })
        .into_iter()
        .collect();
    let mut others: Vec<(String, usize)> = Vec::new();
    for need in needs.iter().filter(|need| need.half.is_none()) {
        // What stands before the figures is the kind of reason.
        let kind = need.found.split(':').next().unwrap_or_default();
        let kind = if kind.starts_with("too few") { format!("with {kind}") } else { kind.to_owned() };
        match others.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, number)) => *number += 1,
            None => others.push((kind, 1)),
        }
    }
    others.order_by_key(|(_, number)| std::cmp::Reverse(*number));
    reasons.extend(others.into_iter().take(2).map(|(kind, number)| format!("{number} {kind}")));
    // The widest interval would need hours for all.
    let middle = halves.get(halves.len() / 2).copied().unwrap_or(f64::INFINITY);
    let half_of_them = || needs.iter().filter(|need| need.half.is_none_or(|half| half <= middle));
    let command = need::command(comparison, half_of_them()).filter(|_| is_alone);
    let most = if half_of_them().count() < needs.len() { "half of them" } else { "them" };
    let hint = command.map(|command| format!(". More time may decide {most}: {command}")).unwrap_or_default();
    Some(format!("{} inconclusive: {}{hint}", needs.len(), reasons.join(", ")))
}
