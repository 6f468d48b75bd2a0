//! Comparisons of runs with a base, as text.

use tollgate_model::compare::{FactDifference, Verdict};
use tollgate_model::{Case, Fact, Run, Unit};

use crate::comparison::{Comparison, name};
use crate::figures;
use crate::table::{Look, Table, heading, paragraph};
use crate::trace::blame;

const UNPAIRED: &str = "Runs share no rounds: this is an unpaired comparison of the medians of their processes. \
    95 % CIs, corrected for the number of rows.";

/// Every comparison, and how they were made.
pub fn text(comparisons: &[Comparison], width: usize) -> String {
    let each: Vec<String> = comparisons.iter().map(|comparison| one(comparison, width)).collect();
    format!("{}{}", each.join("\n"), paragraph(UNPAIRED, width, ""))
}

fn one(comparison: &Comparison, width: usize) -> String {
    let Comparison { base, other, .. } = comparison;
    let mut text = heading(&format!("{} compared with {}", described(other), described(base)), width);
    text.push_str(&facts_text(&comparison.facts, width));
    if let Some(pace) = comparison.pace.and_then(pace_text) {
        text.push_str(&paragraph(&pace, width, ""));
    }
    if base.id == other.id {
        let same = "Both are the same run: its differences show the noise of one run.";
        text.push_str(&paragraph(same, width, ""));
    }
    text.push('\n');
    text.push_str(&table(comparison).render(width));
    text.push_str(&only_text("the base only", &comparison.only_base, width));
    text.push_str(&only_text("the other only", &comparison.only_other, width));
    text.push_str(&paragraph(&counts(comparison), width, ""));
    for traced in blame::of(comparison) {
        text.push_str(&traced.text(width));
    }
    text
}

fn described(run: &Run) -> String {
    format!("{} ({}, {})", name(run), run.environment, run.started)
}

fn facts_text(facts: &[FactDifference], width: usize) -> String {
    if facts.is_empty() {
        return paragraph("No fact differs between the environments.", width, "");
    }
    let value = |fact: &Option<Fact>| fact.as_ref().is_some_and(|fact| fact.value().is_some());
    let of_kind = |base: bool, other: bool| {
        facts.iter().filter(move |fact| value(&fact.base) == base && value(&fact.other) == other)
    };
    let mut text = String::new();
    if of_kind(true, true).next().is_some() {
        let heading = "Facts that differ, base → other; likely causes first:";
        text.push_str(&paragraph(heading, width, ""));
    }
    for fact in of_kind(true, true) {
        let line =
            format!("{}: {} → {}", fact.name, in_words(fact.base.as_ref()), in_words(fact.other.as_ref()));
        text.push_str(&paragraph(&line, width, "  "));
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
    (base.max(other) / base.min(other) > APART).then(|| {
        let [base, other] = [base, other].map(|turn| figures::estimate(turn, Unit::Nanoseconds));
        format!(
            "Loop overhead {base} in the base, {other} in the other: the processor's frequency differed. The \
             thresholds include that."
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

fn table(comparison: &Comparison) -> Table {
    let mut table =
        Table::new(&["benchmark", "base", "other", "ratio", "95 % CI", "verdict"]).with_words(&["verdict"]);
    for row in &comparison.rows {
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
        table.row(look, &cells, result.why.as_slice());
    }
    table
}

fn only_text(where_from: &str, only: &[(Case, String)], width: usize) -> String {
    let line = |(case, why): &(Case, String)| {
        paragraph(&format!("{case}: measured in {where_from}; {why}"), width, "  ")
    };
    only.iter().map(line).collect()
}

fn counts(comparison: &Comparison) -> String {
    let of = |verdict: Verdict| format!("{} {verdict}", comparison.count(verdict));
    [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::Inconclusive].map(of).join(", ")
}
