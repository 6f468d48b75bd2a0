//! The facts of the environments: those that affect a boundary first, unknown ones with the reason.

use std::collections::HashSet;

use crate::page::{Table, Text};
use tollgate_model::Fact;

use super::subject::Subject;
use crate::comparison::Comparison;

/// Characters of a value: a list such as the processor's flags would bury the others.
const MOST: usize = 160;

/// Characters of an effect: some affect many boundaries.
pub const LONGEST_EFFECT: usize = 1000;

/// The facts; of several environments those that are the same in all of them, since those that differ are at the top.
pub fn of(subjects: &[Subject], comparisons: &[Comparison]) -> Vec<Table> {
    let Some(base) = subjects.first() else { return Vec::new() };
    let is_comparison = subjects.len() > 1;
    let differing: HashSet<&str> =
        comparisons.iter().flat_map(|comparison| &comparison.facts).map(|fact| fact.name.as_str()).collect();
    let facts = base.summary.run.facts.iter();
    let everywhere = if is_comparison { " in all environments, as in the base" } else { "" };
    let caption = format!("Known to affect a latency{everywhere}");
    let mut causes = Table::new(caption, ["fact", "value", "read from", "affects"]);
    let mut others = Table::new("", ["fact", "value", "read from"]);
    let mut unknown = Table::new("", ["fact", "why it is not known", "affects"]);
    for (name, fact) in facts.filter(|(name, _)| !differing.contains(name.as_str())) {
        let effect =
            tollgate_inspect::effect(name).map(|effect| Text::cut(&effect.to_string(), LONGEST_EFFECT));
        match fact {
            Fact::Known { value, source } => {
                let table = if effect.is_some() { &mut causes } else { &mut others };
                let row = [Text::new(name), Text::cut(&value.to_string(), MOST), Text::cut(source, MOST)];
                table.rows.push(row.into_iter().chain(effect).collect());
            }
            Fact::Unknown { why } => {
                let why = Text::cut(&why.to_string(), MOST);
                unknown.rows.push(vec![Text::new(name), why, effect.unwrap_or_default()]);
            }
        }
    }
    causes.is_open = !is_comparison;
    others.caption =
        format!("{} facts that are not known to affect a latency{everywhere}", others.rows.len()).into();
    unknown.caption =
        format!("{} facts that are not known{everywhere}, with the reason", unknown.rows.len()).into();
    [causes, others, unknown].into_iter().filter(|table| !table.rows.is_empty()).collect()
}
