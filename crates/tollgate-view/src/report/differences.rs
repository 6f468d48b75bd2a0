//! Differences between environments: the benchmarks, and the facts that are known to affect those that differ.

use tollgate_model::compare::Spread;
use tollgate_model::{Effect, Fact};
use tollgate_output::figures;

use super::known::LONGEST_EFFECT;
use super::subject::Subject;
use crate::blame::{self, Held};
use crate::comparison::Comparison;
use crate::page::{Table, Text};
use crate::session::environments as session;
use crate::{causes, counts};

pub fn all<'a>(subjects: &[Subject<'a>], spread: &Spread, asked: f64) -> Vec<Comparison<'a>> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let compared =
        |other: &Subject<'a>| Comparison::knowing(base.summary.run, other.summary.run, asked, spread);
    others.iter().map(compared).collect()
}

/// A smaller difference of traced commands gets no sentence.
const LARGE: f64 = 1.25;

/// The proven causes, and a sentence for each traced command whose real time differs much. All rows that changed have a table.
pub fn sentences(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Text> {
    let [base, others @ ..] = subjects else { return Vec::new() };
    let each = || comparisons.iter().zip(others);
    let proven =
        each().filter(|(comparison, _)| !comparison.changed().is_empty()).filter_map(|(it, other)| {
            Some(format!("Proven cause of each difference in {}: {}.", other.name, it.proven.as_ref()?))
        });
    let traced = each().filter(|(it, _)| !it.is_alternated).flat_map(|(it, other)| {
        let is_large = |held: &Held| held.ratio().ln().abs() >= LARGE.ln();
        let held = blame::of(it).filter(is_large);
        held.map(|held| held.sentence([&base.name, &other.name]))
    });
    proven.chain(traced).map(|sentence| Text::cut(&sentence, 600)).collect()
}

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
            "{} compared with {}, {} in both: {}.{how}{apart}",
            other.name,
            base.name,
            figures::count(comparison.rows.len(), "case", "cases"),
            comparison.verdicts(),
        ))
    });
    counts.collect()
}

/// The facts that differ: those first that reach the most changed rows, as on a screen.
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
    ranked.sort_by_key(|(reach, _)| std::cmp::Reverse(reach.differing));
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
    /// A list such as the processor's flags would hide the others.
    const MOST: usize = 120;
    match fact {
        None => "not recorded".into(),
        Some(Fact::Known { value, .. }) => Text::cut(&value.to_string(), MOST),
        Some(Fact::Unknown { why }) => Text::cut(&why.to_string(), MOST),
    }
}

struct Reach {
    effect: Option<&'static Effect>,
    all: usize,
    differing: usize,
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
        Self { effect, all, differing }
    }

    fn in_words(&self, effect: &Effect) -> String {
        match self.all {
            0 => format!("{effect}. No case that it affects was measured in both."),
            all => format!("{effect}. {} of {all} such cases differ.", self.differing),
        }
    }
}
