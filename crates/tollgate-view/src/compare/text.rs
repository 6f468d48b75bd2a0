//! Comparisons of runs with a base, as text.

use tollgate_model::compare::{FactDifference, MOST_EXCUSE, Verdict};
use tollgate_model::sorting::Ordered as _;
use tollgate_model::{Case, Run, Unit};
use tollgate_output::figures;
use tollgate_output::table::{Table, heading, paragraph};

use super::alternating;
use super::columns::{self, Compared};
use super::facts::{facts_in_short, facts_text};
use super::need::{self, Need};
use super::processor;
use crate::blame;
use crate::comparison::{ComparedRow, Comparison, name};
use crate::counts;
use crate::versus::difference::Difference;

/// At most this many changed rows are shown, but with `--all`.
const MOST_ROWS: usize = 20;
/// At most this many of the cases that one run lacks.
const MOST_ONLY: usize = 4;
/// Calls of a difference of commands.
const MOST_CALLS: usize = 10;
/// A row names at most this many of its causes.
const MOST_CAUSES: usize = 3;

/// Every comparison, and how they were made. With `all` every row and every fact, else those that changed.
pub fn text(comparisons: &[Comparison], all: bool, width: usize) -> String {
    let each: Vec<String> = comparisons.iter().map(|comparison| one(comparison, all, width)).collect();
    let method = method(comparisons);
    let method = if method.is_empty() { method } else { paragraph(&method, width, "") };
    format!("{}{method}", each.join("\n"))
}

/// How the runs were compared; of runs that took no turns also the command that lets their environments do.
fn method(comparisons: &[Comparison]) -> String {
    let is_timed = |comparison: &&Comparison| comparison.rows.iter().any(|row| !row.is_count());
    let timed: Vec<&Comparison> = comparisons.iter().filter(is_timed).collect();
    let counted = comparisons.iter().find_map(counts::method);
    let of_times = of_times(&timed);
    [of_times, counted].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The same of those with times; None without any.
fn of_times(comparisons: &[&Comparison]) -> Option<String> {
    comparisons.first()?;
    let mut methods: Vec<&str> = Vec::new();
    for comparison in comparisons {
        if !methods.contains(&comparison.method.as_str()) {
            methods.push(&comparison.method);
        }
    }
    let method = methods.join(" Of the others: ");
    let apart = comparisons.iter().find(|comparison| !comparison.is_alternated);
    let Some(apart) = apart.filter(|apart| !apart.is_of_one_session()) else { return Some(method) };
    let command = alternating::command(apart.base, apart.other);
    let list = match alternating::options(apart.base, apart.other) {
        Some(_) => "",
        None => "; tollgate environments lists what A and B can be",
    };
    Some(format!("{method} Turns decide: {command}{list}; of commands tollgate versus"))
}

fn one(comparison: &Comparison, all: bool, width: usize) -> String {
    let Comparison { base, other, .. } = comparison;
    let mut text = heading(&title(comparison), width);
    if base.id == other.id {
        text.push_str(&paragraph("Both are the same run, so every row is the same.", width, ""));
    }
    if let Some(pace) = comparison.pace.and_then(pace_text) {
        text.push_str(&paragraph(&pace, width, ""));
    }
    let changed = comparison.changed();
    if let Some(proven) = &comparison.proven {
        let is = if changed.is_empty() { "" } else { "Proven cause: " };
        text.push_str(&paragraph(&format!("{is}{proven}."), width, ""));
    }
    let mut rows = changed.clone();
    match all {
        true => {
            let of = |verdict| comparison.rows.iter().filter(move |row| row.result.verdict == verdict);
            rows.extend(of(Verdict::Inconclusive).chain(of(Verdict::Same)));
        }
        false => rows.truncate(MOST_ROWS),
    }
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&table(comparison, &rows).render(width));
    }
    if all || comparison.only_base.len() + comparison.only_other.len() <= MOST_ONLY {
        text.push_str(&only_of_both(comparison, width));
    }
    let hidden = changed.len() - rows.len().min(changed.len());
    let has_verdicts = !comparison.rows.is_empty() || comparison.not_compared.is_empty();
    let verdicts = has_verdicts.then(|| verdicts(comparison, hidden));
    for line in verdicts.into_iter().chain(counts::not_compared(comparison)) {
        text.push_str(&paragraph(&line, width, ""));
    }
    text.push_str(&inconclusive(comparison, all, width));
    text.extend(processor::of_rows(comparison).map(|line| paragraph(&line, width, "")));
    text.push('\n');
    text.push_str(&match all {
        true => facts_text(&comparison.facts, width),
        false => facts_in_short(comparison, &rows, width),
    });
    for traced in blame::of(comparison) {
        text.push_str(&traced.text(width));
    }
    if comparison.is_of_commands() {
        let split = Difference::of(comparison)
            .map(|difference| difference.text(if all { usize::MAX } else { MOST_CALLS }, width));
        text.push_str(&split.map_or(String::new(), |split| format!("\n{split}")));
    }
    text
}

/// The spread of the rows without a verdict, and what would decide them.
fn inconclusive(comparison: &Comparison, all: bool, width: usize) -> String {
    let of_row = |row| Need::of(row).map(|need| (row, need));
    let needs: Vec<(&ComparedRow, Need)> = comparison.rows.iter().filter_map(of_row).collect();
    let mut text = String::new();
    if let Some(command) = need::command(comparison, needs.iter().map(|(_, need)| need)) {
        let halves: Vec<f64> = needs.iter().filter_map(|(_, need)| need.half).collect();
        let [least, most] = [f64::min, f64::max].map(|of| halves.iter().copied().reduce(of));
        let span = match (least, most) {
            (Some(least), Some(most)) if least < most => {
                format!(" (±{} to ±{})", figures::percent(least), figures::percent(most))
            }
            (Some(half), _) => format!(" (±{})", figures::percent(half)),
            _ => String::new(),
        };
        let line = format!("More time may decide the inconclusive rows{span}: {command}");
        text.push_str(&paragraph(&line, width, ""));
    }
    text.push_str(&undetectable(comparison).map(|line| paragraph(&line, width, "")).unwrap_or_default());
    let far = |row: &&ComparedRow| row.result.verdict == Verdict::Inconclusive && row.size() > 2.0_f64.ln();
    let mut gross: Vec<&ComparedRow> = comparison.rows.iter().filter(far).collect();
    gross.order_by(|one, another| another.size().total_cmp(&one.size()));
    if let (false, [first, rest @ ..]) = (all, gross.as_slice()) {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(", and {}", figures::count(more, "more row", "more rows")),
        };
        let ratio = Compared::new(comparison, *first).words("ratio").unwrap_or_default();
        let line = format!("Inconclusive in spite of its ratio: {} {ratio}{more}.", first.case());
        text.push_str(&paragraph(&line, width, ""));
    }
    text
}

/// Of runs that took no turns: how large a change has to be to be found in the rows without a verdict.
fn undetectable(comparison: &Comparison) -> Option<String> {
    let is_open =
        |row: &&ComparedRow| !comparison.is_alternated && row.result.verdict == Verdict::Inconclusive;
    let mut ratios: Vec<f64> =
        comparison.rows.iter().filter(is_open).filter_map(|row| row.result.detectable()).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let [middle, most] =
        [ratios.len() / 2, ratios.len().checked_sub(1)?].map(|at| figures::ratio(ratios[at]));
    let rows = figures::count(ratios.len(), "inconclusive row", "inconclusive rows");
    let which = match middle == most {
        true => format!("below {middle} ×"),
        false => format!("below {middle} × in half of them, and below {most} × in one,"),
    };
    Some(format!("{rows}: changes {which} are lost in the spread between runs here."))
}

/// The two, with the kind of each environment; of one session the session once.
fn title(comparison: &Comparison) -> String {
    let Comparison { base, other, .. } = comparison;
    let described = |run: &Run| match &run.session {
        Some(part) => format!("{} (of session {}, {})", name(run), part.id, run.started),
        None => format!("{} ({}, {})", name(run), run.environment, run.started),
    };
    match (&base.session, comparison.is_of_one_session()) {
        (Some(part), true) => {
            format!("{} compared with {} (session {}, {})", name(other), name(base), part.id, base.started)
        }
        _ => format!("{} compared with {}", described(other), described(base)),
    }
}

fn pace_text((base, other): (f64, f64)) -> Option<String> {
    /// A smaller ratio is the same pace.
    const APART: f64 = 1.01;
    let ratio = base.max(other) / base.min(other);
    let is_larger = ratio > 1.0 + MOST_EXCUSE;
    (ratio > APART).then(|| {
        let [base, other] = [base, other].map(|turn| figures::estimate(turn, Unit::Nanoseconds));
        let share = if is_larger { "a factor of 2 of " } else { "" };
        format!(
            "Loop overhead {base} in the base, {other} in the other: the processor's frequency differed. The \
             thresholds include {share}that."
        )
    })
}

fn table<'c>(comparison: &'c Comparison<'c>, rows: &[&'c ComparedRow<'c>]) -> Table {
    let row = |row: &&'c ComparedRow<'c>| (Compared::new(comparison, *row), remark(comparison, row));
    let dispensable = usize::from(comparison.is_alternated && !comparison.is_counted());
    Table::from_rows(&columns::of_table(comparison), rows.iter().map(row)).with_dispensable(dispensable)
}

/// The possible causes of a difference, or what would decide an inconclusive row; of a count that varies, how.
fn remark(comparison: &Comparison, row: &ComparedRow) -> Option<String> {
    if row.result.verdict.is_difference() {
        // The sentence above the rows names it.
        if comparison.proven.is_some() {
            return None;
        }
        let names: Vec<&str> = comparison.causes(row).map(|fact| fact.name.as_str()).collect();
        let (named, more) = names.split_at(names.len().min(MOST_CAUSES));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        return match named {
            [] if comparison.facts.iter().any(FactDifference::is_change) => {
                Some("no fact that changed affects it".to_owned())
            }
            [] => None,
            [cause] => Some(format!("possible cause: {cause}")),
            several => Some(format!("possible causes: {}{more}", several.join(", "))),
        };
    }
    let Some(need) = Need::of(row) else { return row.result.why.clone() };
    let command = need::command(comparison, std::iter::once(&need));
    let least = row.result.detectable().filter(|_| !comparison.is_alternated && need.half.is_some());
    Some(match (command, least) {
        (Some(command), _) => format!("{}; more time: {command}", need.found),
        (None, Some(least)) => {
            format!("{}; changes below {} × are lost in it", need.found, figures::ratio(least))
        }
        (None, None) => need.found,
    })
}

/// The cases that one of the two runs alone measured, and why.
pub(crate) fn only_of_both(comparison: &Comparison, width: usize) -> String {
    only_text("the base only", &comparison.only_base, width)
        + &only_text("the other only", &comparison.only_other, width)
}

fn only_text(where_from: &str, only: &[(Case, String)], width: usize) -> String {
    let line = |(case, why): &(Case, String)| {
        paragraph(&format!("{case}: measured in {where_from}; {why}"), width, "  ")
    };
    only.iter().map(line).collect()
}

/// The number of rows by verdict, and of those that are not shown.
fn verdicts(comparison: &Comparison, hidden: usize) -> String {
    let mut text = comparison.verdicts();
    for (count, what) in [
        (comparison.only_base.len(), "in the base only"),
        (comparison.only_other.len(), "in the other only"),
        (hidden, "more changed (--all)"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    text
}
