//! Differences between environments: the benchmarks, and the facts that are known to affect those that differ.

use std::collections::BTreeMap;

use tollgate_model::compare::{FactDifference, Spread};
use tollgate_model::sorting::Ordered as _;
use tollgate_model::{Case, Effect, Fact, Unit};
use tollgate_output::figures;

use super::known::LONGEST_EFFECT;
use super::subject::Subject;
use crate::blame::Held;
use crate::comparison::{ComparedRow, Comparison};
use crate::page::{Table, Text};
use crate::session::environments as session;
use crate::{causes, counts};

/// Every other environment compared with the first, where no relative difference of up to `asked` counts.
pub fn all<'a>(subjects: &[Subject<'a>], spread: &Spread, asked: f64) -> Vec<Comparison<'a>> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let compared =
        |other: &Subject<'a>| Comparison::knowing(base.summary.run, other.summary.run, asked, spread);
    others.iter().map(compared).collect()
}

/// A smaller difference is no sentence.
const LARGE: f64 = 1.25;
/// More sentences are not read.
const MOST: usize = 12;

/// A sentence for each large difference, the largest of a benchmark and environment.
pub fn sentences(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Text> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let mut found: Vec<(f64, String)> = Vec::new();
    let mut proven = Vec::new();
    for (comparison, other) in comparisons.iter().zip(others) {
        if let Some(cause) = comparison.proven.as_ref().filter(|_| !comparison.changed().is_empty()) {
            proven.push(Text::cut(
                &format!("Proven cause of each difference in {}: {cause}.", other.name),
                600,
            ));
        }
        // Turns and counts have a table.
        if comparison.is_alternated || comparison.is_counted() {
            continue;
        }
        let mut by_benchmark: BTreeMap<(&str, bool), Vec<(&ComparedRow, f64)>> = BTreeMap::new();
        for row in &comparison.rows {
            let ratio = row.ratio().filter(|_| row.result.verdict.is_difference());
            if let Some(ratio) = ratio.filter(|ratio| size(*ratio) >= LARGE.ln()) {
                by_benchmark.entry((&row.case().benchmark, ratio > 1.0)).or_default().push((row, ratio));
            }
            let traced = Held::of(row.case(), row.base, row.other);
            if let Some(traced) = traced.filter(|traced| size(traced.ratio()) >= LARGE.ln()) {
                found.push((size(traced.ratio()), traced.sentence([&base.name, &other.name])));
            }
        }
        for rows in by_benchmark.values() {
            let largest = rows.iter().max_by(|(_, a), (_, b)| size(*a).total_cmp(&size(*b)));
            if let Some(&(row, ratio)) = largest {
                let sentence = sentence(&base.name, &other.name, row, ratio, rows.len() - 1);
                let by = known_causes(&comparison.facts, row.case());
                found.push((size(ratio), format!("{sentence}{by}")));
            }
        }
    }
    found.order_by(|(a, _), (b, _)| b.total_cmp(a));
    let left_out = found.len().saturating_sub(MOST);
    let sentences = found.iter().take(MOST).map(|(_, sentence)| Text::cut(sentence, 600));
    let more = (left_out > 0).then(|| {
        Text::from(format!(
            "{left_out} more benchmarks differ by a quarter or more: see the tables of the suites."
        ))
    });
    proven.into_iter().chain(sentences).chain(more).collect()
}

/// The numbers of verdicts, a sentence for each comparison.
pub fn counts(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Text> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let counts = comparisons.iter().zip(others).map(|(comparison, other)| {
        let how = session::method(comparison);
        let how = how.map(|how| format!(" {how}.").replace("..", ".")).unwrap_or_default();
        let apart = counts::not_compared(comparison);
        if let (true, Some(why)) = (comparison.rows.is_empty(), &apart) {
            return Text::new(why);
        }
        let apart = apart.map(|why| format!(" {why}")).unwrap_or_default();
        Text::new(&format!(
            "Of {} in both, {} compared with {}: {}.{how}{apart}",
            figures::count(comparison.rows.len(), "case", "cases"),
            other.name,
            base.name,
            comparison.verdicts(),
        ))
    });
    counts.collect()
}

/// How far a ratio is from one.
fn size(ratio: f64) -> f64 {
    ratio.ln().abs()
}

fn sentence(base: &str, other: &str, row: &ComparedRow, ratio: f64, likewise: usize) -> String {
    let result = &row.result;
    let estimate = |estimate: Option<f64>, unit: Unit| {
        estimate.map_or("no estimate".to_owned(), |estimate| figures::estimate(estimate, unit))
    };
    let (here, there) = (estimate(result.other, row.other.unit), estimate(result.base, row.base.unit));
    let words = figures::words(row.base.unit);
    let how = match result.interval {
        Some(span) => figures::compared_within(ratio, [span.low, span.high], words),
        None => figures::compared(ratio, words),
    };
    let more = match likewise {
        0 => String::new(),
        1 => " One more of its cases differs likewise.".to_owned(),
        more => format!(" {more} more of its cases differ likewise."),
    };
    format!("{} is {how} in {other} than in {base}: {here} compared with {there}.{more}", row.case())
}

/// The facts that differ and are known to affect this case, where they are few.
fn known_causes(facts: &[FactDifference], case: &Case) -> String {
    const FEW: usize = 4;
    let names: Vec<&str> = facts
        .iter()
        .filter(|fact| has_value(&fact.base) && has_value(&fact.other))
        .filter(|fact| {
            tollgate_inspect::effect(&fact.name)
                .is_some_and(|effect| !effect.is_general() && causes::reaches(effect, case))
        })
        .map(|fact| fact.name.as_str())
        .collect();
    match names.as_slice() {
        [] => String::new(),
        names if names.len() > FEW => format!(
            " {} facts that differ are known to affect it, {} among them.",
            names.len(),
            names[..2].join(" and ")
        ),
        [one] => format!(" {one} differs, which is known to affect it."),
        [before @ .., last] => {
            format!(" {} and {last} differ, which are known to affect it.", before.join(", "))
        }
    }
}

fn has_value(fact: &Option<Fact>) -> bool {
    fact.as_ref().is_some_and(|fact| fact.value().is_some())
}

/// The facts that differ, ordered by how many of the cases that they are known to affect differ.
pub fn facts(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Table> {
    if comparisons.is_empty() {
        return Vec::new();
    }
    let mut names: Vec<&str> = Vec::new();
    for fact in comparisons.iter().flat_map(|comparison| &comparison.facts) {
        if !names.contains(&fact.name.as_str()) {
            names.push(&fact.name);
        }
    }
    if names.is_empty() {
        return vec![Table::new("No fact differs between the environments", Vec::<Text>::new())];
    }
    let mut ranked: Vec<(Reach, &str)> =
        names.into_iter().map(|name| (Reach::new(name, comparisons), name)).collect();
    ranked.order_by(|(a, _), (b, _)| b.rank().total_cmp(&a.rank()));
    let (affecting, others): (Vec<_>, Vec<_>) =
        ranked.into_iter().partition(|(reach, _)| reach.effect.is_some());
    let row = |(reach, name): &(Reach, &str)| {
        let values = subjects.iter().map(|subject| value(subject.summary.run.facts.get(*name)));
        let affects = reach.effect.map(|effect| Text::cut(&reach.in_words(effect), LONGEST_EFFECT));
        std::iter::once(Text::new(name)).chain(values).chain(affects).collect()
    };
    let head = |last: Option<&str>| {
        let names = subjects.iter().map(|subject| Text::label(&subject.name));
        std::iter::once(Text::from("fact")).chain(names).chain(last.map(Text::from)).collect()
    };
    let table = |caption: String, is_open, last, rows: &[(Reach, &str)]| Table {
        caption: caption.into(),
        head: head(last),
        rows: rows.iter().map(row).collect(),
        is_open,
    };
    /// Further ones are folded.
    const FIRST: usize = 12;
    let (first, rest) = affecting.split_at(affecting.len().min(FIRST));
    let tables = [
        table("Facts that differ and are known to affect a latency".to_owned(), true, Some("affects"), first),
        table(
            format!("{} more that differ and are known to affect a latency", rest.len()),
            false,
            Some("affects"),
            rest,
        ),
        table(format!("{} more facts that differ", others.len()), false, None, &others),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn value(fact: Option<&Fact>) -> Text {
    /// A list such as the processor's flags would bury the others.
    const MOST: usize = 120;
    match fact {
        None => "not recorded".into(),
        Some(Fact::Known { value, .. }) => Text::cut(&value.to_string(), MOST),
        Some(Fact::Unknown { why }) => Text::cut(&why.to_string(), MOST),
    }
}

/// Of the cases that a fact is known to affect, how many there are and how many differ.
struct Reach {
    effect: Option<&'static Effect>,
    all: usize,
    differing: usize,
    /// Its value is known in all environments that differ.
    is_known: bool,
}

impl Reach {
    fn new(name: &str, comparisons: &[Comparison]) -> Self {
        let effect = tollgate_inspect::effect(name);
        let (mut all, mut differing) = (0, 0);
        for row in comparisons.iter().flat_map(|comparison| &comparison.rows) {
            if effect.is_some_and(|effect| causes::reaches(effect, row.case())) {
                all += 1;
                differing += usize::from(row.result.verdict.is_difference());
            }
        }
        let of_name = comparisons.iter().flat_map(|comparison| &comparison.facts);
        let is_known = of_name
            .filter(|fact| fact.name == name)
            .all(|fact| has_value(&fact.base) && has_value(&fact.other));
        Self { effect, all, differing, is_known }
    }

    /// The share of its cases that differ; of equal shares, their number.
    fn rank(&self) -> f64 {
        let share = self.differing as f64 / self.all.max(1) as f64;
        // Where no case differs, facts that both know come before facts that one hides.
        let known = if self.is_known { 1e-9 } else { 0.0 };
        share + self.differing as f64 * 1e-6 + known
    }

    fn in_words(&self, effect: &Effect) -> String {
        match self.all {
            0 => format!("{effect}. No case that it affects was measured in both."),
            all => format!("{effect}. {} of {all} such cases differ.", self.differing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differing(name: &str) -> FactDifference {
        let known = |value: &str| Some(Fact::known(value, "a file"));
        FactDifference { name: name.to_owned(), base: known("one"), other: known("another") }
    }

    #[test]
    fn a_sentence_names_the_facts_that_affect_what_the_benchmark_crosses() {
        // A general fact such as the governor is named in no sentence.
        let facts = ["mitigation.pti", "power.governor", "clocksource.current"].map(differing);
        let said = |benchmark: &str| known_causes(&facts, &Case::plain(benchmark));
        assert_eq!(said("entry/syscall"), " mitigation.pti differs, which is known to affect it.");
        assert_eq!(
            said("entry/syscall-clock"),
            " mitigation.pti and clocksource.current differ, which are known to affect it."
        );
        assert_eq!(said("memory/latency"), "");
        assert_eq!(said("locks/uncontended"), "");
        assert_eq!(said("entry/of-another-version"), "");
    }
}
