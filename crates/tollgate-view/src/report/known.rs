//! The facts of the environments: each beside the suite that it affects, the rest at the end, unknown ones with the reason.

use std::collections::{BTreeMap, HashSet};

use crate::page::{Table, Text};
use tollgate_model::{Case, Effect, Fact};

use super::subject::Subject;
use super::suites::{cases, suites};
use crate::comparison::Comparison;
use crate::{causes, facts};

/// Characters of a value: a list such as the processor's flags would hide the others.
const MOST: usize = 160;

/// Characters of an effect: some affect many boundaries.
pub const LONGEST_EFFECT: usize = 1000;

/// The facts of a page. For several environments those that are the same in all of them, since those that differ are at the top.
#[derive(Default)]
pub struct Known {
    pub by_suite: BTreeMap<&'static str, Table>,
    pub others: Vec<Table>,
}

pub fn of(subjects: &[Subject], comparisons: &[Comparison]) -> Known {
    let Some(base) = subjects.first() else { return Known::default() };
    let differing: HashSet<&str> =
        comparisons.iter().flat_map(|comparison| &comparison.facts).map(|fact| fact.name.as_str()).collect();
    let facts = base.summary.run.facts.iter();
    let everywhere = if subjects.len() > 1 { " in all environments, as in the base" } else { "" };
    let suites: Vec<(&str, Vec<&Case>)> =
        suites(subjects).into_iter().map(|suite| (suite, cases(subjects, suite))).collect();
    let mut known = Known::default();
    let mut general = Table::new("", ["fact", "value", "affects"]);
    let mut others = Table::new("", ["fact", "value", "read from"]);
    let mut unknown = Table::new("", ["fact", "why it is not known", "affects"]);
    for (name, fact) in facts.filter(|(name, _)| !differing.contains(name.as_str())) {
        let effect = tollgate_inspect::effect(name);
        let affects = effect.map(|effect| Text::cut(&effect.to_string(), LONGEST_EFFECT));
        match (fact, affects) {
            (Fact::Known { value, .. }, Some(affects)) => {
                let row = vec![Text::new(name), Text::cut(&facts::in_words(name, value), MOST), affects];
                let table = match effect.and_then(|effect| place(effect, &suites)) {
                    Some(suite) => known
                        .by_suite
                        .entry(suite)
                        .or_insert_with(|| Table::new("", ["fact", "value", "affects"])),
                    None => &mut general,
                };
                table.rows.push(row);
            }
            (Fact::Known { value, source }, None) => {
                let value = Text::cut(&facts::in_words(name, value), MOST);
                others.rows.push(vec![Text::new(name), value, Text::cut(source, MOST)]);
            }
            (Fact::Unknown { why }, affects) => {
                let why = Text::cut(&why.to_string(), MOST);
                unknown.rows.push(vec![Text::new(name), why, affects.unwrap_or_default()]);
            }
        }
    }
    for (suite, table) in &mut known.by_suite {
        table.caption = format!("Facts that affect {suite}{everywhere}: {}", named(table)).into();
    }
    general.caption =
        format!("Facts that affect all suites, or none of this page{everywhere}: {}", named(&general)).into();
    others.caption =
        format!("{} facts that are not known to affect a latency{everywhere}", others.rows.len()).into();
    unknown.caption =
        format!("{} facts that are not known{everywhere}, with the reason", unknown.rows.len()).into();
    known.others = [general, others, unknown].into_iter().filter(|table| !table.rows.is_empty()).collect();
    known
}

fn named(table: &Table) -> String {
    const FEW: usize = 4;
    let names: Vec<&str> = table.rows.iter().filter_map(|row| Some(row.first()?.as_str())).collect();
    match names.len().checked_sub(FEW + 1) {
        Some(more) => format!("{} and {} more", names[..FEW].join(", "), more + 1),
        None => names.join(", "),
    }
}

/// The suite beside which a fact is listed: the first suite in which it affects at least half of the cases, or else the one in which
/// it affects the largest share. A general fact has no suite.
fn place<'a>(effect: &Effect, suites: &[(&'a str, Vec<&Case>)]) -> Option<&'a str> {
    if effect.is_general() {
        return None;
    }
    let share = |cases: &[&Case]| {
        cases.iter().filter(|case| causes::reaches(effect, case)).count() as f64 / cases.len().max(1) as f64
    };
    let shares: Vec<(&str, f64)> = suites.iter().map(|(suite, cases)| (*suite, share(cases))).collect();
    let most = || shares.iter().rev().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let found = shares.iter().find(|(_, share)| *share >= 0.5).or_else(most)?;
    (found.1 > 0.0).then_some(found.0)
}
