//! Comparisons of runs with a base, as text.

use tollgate_model::compare::MOST_EXCUSE;
use tollgate_model::{Run, Unit};
use tollgate_output::figures;
use tollgate_output::table::paragraph;

use super::alternating;
use super::block::{Block, Head};
use super::columns::Choice;
use crate::blame;
use crate::comparison::{Comparison, name};
use crate::counts;
use crate::versus::difference::Difference;

/// Most changed rows shown without `--all`.
const MOST_ROWS: usize = 20;
/// Most cases shown that one run lacks.
const MOST_ONLY: usize = 4;
const MOST_CALLS: usize = 10;
const MOST_CAUSES: usize = 8;

/// Every comparison and its method. With `all` every row and every fact, otherwise those that changed.
pub fn text(comparisons: &[Comparison], all: bool, width: usize) -> String {
    let each: Vec<String> = comparisons.iter().map(|comparison| one(comparison, all, width)).collect();
    let method = method(comparisons);
    let method = if method.is_empty() { method } else { paragraph(&method, width, "") };
    format!("{}{method}", each.join("\n"))
}

/// How the runs were compared; for runs that did not alternate also the command that lets their environments do so.
fn method(comparisons: &[Comparison]) -> String {
    let is_timed = |comparison: &&Comparison| comparison.rows.iter().any(|row| !row.is_count());
    let timed: Vec<&Comparison> = comparisons.iter().filter(is_timed).collect();
    let counted = comparisons.iter().find_map(counts::method);
    let of_times = of_times(&timed);
    [of_times, counted].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn of_times(comparisons: &[&Comparison]) -> Option<String> {
    comparisons.first()?;
    let mut methods: Vec<&str> = Vec::new();
    for comparison in comparisons {
        if !methods.contains(&comparison.method.as_str()) {
            methods.push(&comparison.method);
        }
    }
    let method = methods.join(" The others: ");
    let apart = comparisons.iter().find(|comparison| !comparison.is_alternated);
    let Some(apart) = apart.filter(|apart| !apart.is_of_one_session()) else { return Some(method) };
    let command = alternating::command(apart.base, apart.other);
    let list = match alternating::options(apart.base, apart.other) {
        Some(_) => "",
        None => "; tollgate environments lists what A and B can be",
    };
    Some(format!("{method} Alternation decides: {command}{list}; for commands tollgate versus"))
}

fn one(comparison: &Comparison, all: bool, width: usize) -> String {
    let head = Head {
        who: who(comparison),
        how: alike(comparison),
        choice: Choice::Both,
        most_causes: MOST_CAUSES,
        most_only: MOST_ONLY,
        is_helpful: true,
    };
    let block = Block::new(comparison, head, width);
    let mut text = if all { block.whole() } else { block.text(MOST_ROWS).0 };
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

/// How similar the two are apart from their environments: whether they are one run, and the pace of the processor.
fn alike(comparison: &Comparison) -> Vec<String> {
    let is_one = comparison.base.id == comparison.other.id;
    let one = is_one.then(|| "Both are the same run, so every row is the same.".to_owned());
    one.into_iter().chain(comparison.pace.and_then(pace_text)).collect()
}

fn who(comparison: &Comparison) -> String {
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
    /// A smaller ratio counts as the same pace.
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
