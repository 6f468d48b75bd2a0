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
    let shared: Vec<(&String, &Fact)> =
        facts.filter(|(name, _)| !differing.contains(name.as_str())).collect();
    let everywhere = if is_comparison { " in all environments, as in the base" } else { "" };
    let mut causes =
        table(format!("Known to affect a latency{everywhere}"), &["fact", "value", "read from", "affects"]);
    let mut others = table(String::new(), &["fact", "value", "read from"]);
    let mut unknown = table(String::new(), &["fact", "why it is not known", "affects"]);
    for (name, fact) in shared {
        let effect =
            tollgate_inspect::effect(name).map(|effect| Text::cut(&effect.to_string(), LONGEST_EFFECT));
        match fact {
            Fact::Known { value, source } => {
                let mut row =
                    vec![Text::new(name), Text::cut(&value.to_string(), MOST), Text::cut(source, MOST)];
                match effect {
                    Some(effect) => {
                        row.push(effect);
                        causes.rows.push(row);
                    }
                    None => others.rows.push(row),
                }
            }
            Fact::Unknown { why } => {
                unknown.rows.push(vec![
                    Text::new(name),
                    Text::cut(&why.to_string(), MOST),
                    effect.unwrap_or_default(),
                ]);
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

fn table(caption: String, head: &[&str]) -> Table {
    Table {
        caption: caption.into(),
        head: head.iter().map(|name| Text::from(*name)).collect(),
        ..Table::default()
    }
}
