//! Comparisons of runs with a base, as text.

use std::collections::HashSet;

use tollgate_model::compare::{FactDifference, MOST_EXCUSE, Verdict};
use tollgate_model::{Case, Fact, Run, Unit};

use super::need::{self, Need};
use crate::comparison::{Comparison, Row, name};
use crate::figures;
use crate::table::{Look, Table, heading, paragraph};
use crate::trace::blame;

const UNPAIRED: &str = "Unpaired: medians of processes; 95 % CIs, corrected for the number of rows.";
/// At most this many changed rows are shown, but with `--all`.
const MOST_ROWS: usize = 20;
/// At most this many of the facts that changed.
const MOST_FACTS: usize = 8;
/// At most this many of the cases that one run lacks.
const MOST_ONLY: usize = 4;
/// A row names at most this many of its causes.
const MOST_CAUSES: usize = 3;

/// Every comparison, and how they were made. With `all` every row and every fact, else those that changed.
pub fn text(comparisons: &[Comparison], all: bool, width: usize) -> String {
    let each: Vec<String> = comparisons.iter().map(|comparison| one(comparison, all, width)).collect();
    format!("{}{}", each.join("\n"), paragraph(UNPAIRED, width, ""))
}

fn one(comparison: &Comparison, all: bool, width: usize) -> String {
    let Comparison { base, other, .. } = comparison;
    let mut text = heading(&format!("{} compared with {}", described(other), described(base)), width);
    if base.id == other.id {
        let same = "Both are the same run: its differences show the noise of one run.";
        text.push_str(&paragraph(same, width, ""));
    }
    if let Some(pace) = comparison.pace.and_then(pace_text) {
        text.push_str(&paragraph(&pace, width, ""));
    }
    let changed = comparison.changed();
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
        text.push_str(&only_text("the base only", &comparison.only_base, width));
        text.push_str(&only_text("the other only", &comparison.only_other, width));
    }
    text.push_str(&paragraph(&counts(comparison, changed.len() - rows.len().min(changed.len())), width, ""));
    text.push_str(&inconclusive(comparison, all, width));
    text.push('\n');
    text.push_str(&match all {
        true => facts_text(&comparison.facts, width),
        false => facts_in_short(comparison, &rows, width),
    });
    for traced in blame::of(comparison) {
        text.push_str(&traced.text(width));
    }
    text
}

/// The spread of the rows without a verdict, and what would decide them.
fn inconclusive(comparison: &Comparison, all: bool, width: usize) -> String {
    let of_row = |row| Need::of(row).map(|need| (row, need));
    let needs: Vec<(&Row, Need)> = comparison.rows.iter().filter_map(of_row).collect();
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
    let far = |row: &&Row| row.result.verdict == Verdict::Inconclusive && row.size() > 2.0_f64.ln();
    let mut gross: Vec<&Row> = comparison.rows.iter().filter(far).collect();
    gross.sort_by(|one, another| another.size().total_cmp(&one.size()));
    if let (false, [first, rest @ ..]) = (all, gross.as_slice()) {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more rows", rest.len()) };
        let ratio = figures::ratio(first.result.ratio);
        let line = format!("Inconclusive in spite of its ratio: {} {ratio}{more}.", first.case());
        text.push_str(&paragraph(&line, width, ""));
    }
    text
}

/// The facts that can cause the differences shown, a few others that changed, and how many more there are.
fn facts_in_short(comparison: &Comparison, rows: &[&Row], width: usize) -> String {
    let changed: Vec<&FactDifference> = comparison.facts.iter().filter(|fact| fact.is_change()).collect();
    let causes: HashSet<&str> =
        rows.iter().flat_map(|row| comparison.causes(row)).map(|fact| fact.name.as_str()).collect();
    let mut shown = changed.clone();
    shown.sort_by_key(|fact| !causes.contains(fact.name.as_str()));
    shown.truncate(MOST_FACTS);
    let mut text = String::new();
    if !shown.is_empty() {
        let heading = match causes.is_empty() {
            true => "Facts that changed, base → other:",
            false => "Facts that changed, base → other; possible causes first:",
        };
        text.push_str(&paragraph(heading, width, ""));
    }
    for fact in &shown {
        text.push_str(&paragraph(&change(fact), width, "  "));
    }
    let known = |base: bool| {
        comparison
            .facts
            .iter()
            .filter(move |fact| is_known(&fact.base) == base && is_known(&fact.other) != base)
    };
    let counted = [
        (changed.len() - shown.len(), "more changed"),
        (known(true).count(), "known in the base only"),
        (known(false).count(), "known in the other only"),
    ];
    let parts: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    text.push_str(&match (parts.is_empty(), shown.is_empty()) {
        (true, true) => paragraph("No fact changed.", width, ""),
        (true, false) => String::new(),
        (false, _) => paragraph(&format!("Facts: {} (--all shows them).", parts.join(", ")), width, ""),
    });
    text
}

fn change(fact: &FactDifference) -> String {
    format!("{}: {} → {}", fact.name, in_words(fact.base.as_ref()), in_words(fact.other.as_ref()))
}

fn is_known(fact: &Option<Fact>) -> bool {
    fact.as_ref().is_some_and(|fact| fact.value().is_some())
}

fn described(run: &Run) -> String {
    format!("{} ({}, {})", name(run), run.environment, run.started)
}

fn facts_text(facts: &[FactDifference], width: usize) -> String {
    if facts.is_empty() {
        return paragraph("No fact differs between the environments.", width, "");
    }
    let of_kind = |base: bool, other: bool| {
        facts.iter().filter(move |fact| is_known(&fact.base) == base && is_known(&fact.other) == other)
    };
    let mut text = String::new();
    if of_kind(true, true).next().is_some() {
        let heading = "Facts that differ, base → other; likely causes first:";
        text.push_str(&paragraph(heading, width, ""));
    }
    for fact in of_kind(true, true) {
        text.push_str(&paragraph(&change(fact), width, "  "));
        if let Some(effect) = tollgate_inspect::effect(&fact.name) {
            text.push_str(&paragraph(&format!("affects {effect}"), width, "      "));
        }
    }
    // Facts that one run lacks are named only; `show --format json` has the reasons.
    for (base, other, heading) in [
        (true, false, "Known in the base only"),
        (false, true, "Known in the other only"),
        (false, false, "Unknown in both, for different reasons"),
    ] {
        /// Up to this many are shown with their values.
        const FEW: usize = 8;
        let few = of_kind(base, other).count() <= FEW;
        let named = |fact: &FactDifference| {
            let value = fact.base.iter().chain(&fact.other).find_map(Fact::value).filter(|_| few);
            value.map_or_else(|| fact.name.clone(), |value| format!("{} ({value})", fact.name))
        };
        let names: Vec<String> = of_kind(base, other).map(named).collect();
        if !names.is_empty() {
            text.push_str(&paragraph(&format!("{heading}: {}.", names.join(", ")), width, ""));
        }
    }
    text
}

/// How the processor's pace differed, where it did: every threshold rises by that.
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

fn in_words(fact: Option<&Fact>) -> String {
    /// A list such as the processor's flags would bury the others.
    const MOST: usize = 60;
    let words = match fact {
        None => "not recorded".to_owned(),
        Some(Fact::Known { value, .. }) => value.to_string(),
        Some(Fact::Unknown { why }) => why.to_string(),
    };
    match words.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

fn table(comparison: &Comparison, rows: &[&Row]) -> Table {
    let mut table =
        Table::new(&["benchmark", "base", "other", "ratio", "95 % CI", "verdict"]).with_words(&["verdict"]);
    for row in rows {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let estimate = |estimate: Option<f64>, unit: Unit| {
            or_none(estimate.map(|estimate| figures::estimate(estimate, unit)))
        };
        let result = &row.result;
        let interval = result.interval.map(|interval| figures::ratio_span(interval.low, interval.high));
        let cells = [
            result.case.to_string(),
            estimate(result.base, row.base.unit),
            estimate(result.other, row.other.unit),
            or_none(row.ratio().map(figures::ratio)),
            interval.unwrap_or_default(),
            result.verdict.to_string(),
        ];
        let look = match result.verdict {
            Verdict::Slower | Verdict::Faster => Look::Coloured,
            Verdict::Same => Look::Plain,
            Verdict::Inconclusive => Look::Faint,
        };
        table.row(look, &cells, remark(comparison, row).as_slice());
    }
    table
}

/// The possible causes of a difference, or what would decide an inconclusive row.
fn remark(comparison: &Comparison, row: &Row) -> Option<String> {
    if row.result.verdict.is_difference() {
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
    let need = Need::of(row)?;
    let command = need::command(comparison, std::iter::once(&need));
    Some(match command {
        Some(command) => format!("{}; more time: {command}", need.found),
        None => need.found,
    })
}

fn only_text(where_from: &str, only: &[(Case, String)], width: usize) -> String {
    let line = |(case, why): &(Case, String)| {
        paragraph(&format!("{case}: measured in {where_from}; {why}"), width, "  ")
    };
    only.iter().map(line).collect()
}

/// The number of rows by verdict, and of those that are not shown.
fn counts(comparison: &Comparison, hidden: usize) -> String {
    let of = |verdict: Verdict| format!("{} {verdict}", comparison.count(verdict));
    let verdicts = [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::Inconclusive].map(of);
    let mut text = verdicts.join(", ");
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
