//! The causes of the changes in a comparison, below its rows.

use std::cmp::Reverse;

use tollgate_model::compare::FactDifference;
use tollgate_output::figures::count;

use super::facts::change;
use crate::comparison::{ComparedRow, Comparison, is_change};

/// The kernel that replaces Linux. Its other facts differ with it.
const KERNEL: &str = "sandbox.kernel";

/// Facts that show a proven cause, with their values. If there are more, only this many names are shown.
const MOST_SHOWN: usize = 4;

/// The facts that can be causes of the changed rows, those first that reach the most rows.
pub(super) struct Causes<'a> {
    shown: Vec<(&'a FactDifference, usize)>,
    more: usize,
}

impl<'a> Causes<'a> {
    pub(super) fn new(comparison: &'a Comparison<'_>, most: usize) -> Self {
        let mut shown: Vec<(&FactDifference, usize)> = Vec::new();
        for row in comparison.changed() {
            for cause in comparison.causes(row) {
                match shown.iter_mut().find(|(known, _)| known.name == cause.name) {
                    Some((_, rows)) => *rows += 1,
                    None => shown.push((cause, 1)),
                }
            }
        }
        // Facts with the same number keep the order of the comparison: the likeliest first.
        shown.sort_by_key(|(fact, rows)| (Reverse(*rows), fact.name != KERNEL));
        let all = shown.len();
        let is_kernel = shown.first().is_some_and(|(fact, _)| fact.name == KERNEL);
        shown.truncate(if is_kernel { 1 } else { most });
        Self { more: all - shown.len(), shown }
    }

    /// The numbers of a row's causes; `+` if it has only others.
    pub(super) fn numbers(&self, comparison: &Comparison, row: &ComparedRow) -> String {
        let causes: Vec<&str> = comparison.causes(row).map(|fact| fact.name.as_str()).collect();
        let of_row =
            self.shown.iter().enumerate().filter(|(_, (fact, _))| causes.contains(&fact.name.as_str()));
        let numbers: Vec<String> = of_row.map(|(at, _)| (at + 1).to_string()).collect();
        if numbers.is_empty() && !causes.is_empty() { "+".to_owned() } else { numbers.join(" ") }
    }

    pub(super) fn sentences(&self, comparison: &Comparison) -> Vec<String> {
        let is_changed = comparison.rows.iter().any(|row| row.result.verdict.is_difference());
        if let Some(proven) = &comparison.proven {
            if !is_changed {
                return vec![proven.to_string()];
            }
            let facts = comparison.facts.iter().filter(|fact| proven.facts.contains(&fact.name));
            let facts: Vec<&FactDifference> = facts.collect();
            let facts: Vec<String> = match facts.len() {
                0..=MOST_SHOWN => facts.into_iter().map(change).collect(),
                number => {
                    let names = facts[..MOST_SHOWN].iter().map(|fact| fact.name.clone());
                    names.chain([format!("{} more", number - MOST_SHOWN)]).collect()
                }
            };
            let facts = (!facts.is_empty()).then(|| format!("Facts that show it: {}", facts.join("; ")));
            return std::iter::once(format!("Proven cause: {proven}")).chain(facts).collect();
        }
        let cause = |(at, (fact, rows)): (usize, &(&FactDifference, usize))| {
            format!("Possible cause {} ({}): {}", at + 1, count(*rows, "row", "rows"), change(fact))
        };
        let others =
            comparison.facts.iter().filter(|fact| is_change(fact)).count() - self.shown.len() - self.more;
        let others = match (is_changed, self.more, others) {
            (_, 0, 0) if self.shown.is_empty() => Some("No fact differs between the two.".to_owned()),
            (_, 0, 0) => None,
            (false, ..) => Some(format!("{}.", count(others, "fact differs", "facts differ"))),
            (true, 0, others) if self.shown.is_empty() => Some(format!(
                "{}; none reaches a changed row.",
                count(others, "fact differs", "facts differ")
            )),
            (true, 0, others) => Some(format!(
                "{}; none reaches a changed row.",
                count(others, "more fact differs", "more facts differ")
            )),
            (true, more, 0) => {
                Some(format!("{} changed rows.", count(more, "more fact reaches", "more facts reach")))
            }
            (true, more, others) => Some(format!(
                "{} changed rows; {others} that differ reach none.",
                count(more, "more fact reaches", "more facts reach")
            )),
        };
        self.shown.iter().enumerate().map(cause).chain(others).collect()
    }
}
