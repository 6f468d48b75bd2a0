//! Counts of commands beside their times: what both say together.

use tollgate_engine::session::FunctionCount;
use tollgate_model::Case;
use tollgate_model::compare::Verdict;
use tollgate_model::versus::{INSTRUCTIONS, KERNEL_INSTRUCTIONS, USER_INSTRUCTIONS};
use tollgate_output::figures::{percent, thousands};
use tollgate_output::table::{heading, paragraph};

use super::{cells, counted, said};
use crate::comparison::Comparison;
use crate::session::Session;

/// The counts of commands that were timed in `timed`, with a sentence for each other command that says what both mean.
pub fn counts(
    timed: &Session,
    counted: &Session,
    functions: &[Vec<FunctionCount>],
    all: bool,
    width: usize,
) -> String {
    let cells = cells::all(counted);
    let mut text = format!("\n{}{}", heading("Counted", width), counted::table(&cells, width));
    for sentence in sentences(timed, counted) {
        text.push_str(&paragraph(&sentence, width, ""));
    }
    let differ =
        counted.comparisons.iter().any(|comparison| verdict(comparison, INSTRUCTIONS) != Some(Verdict::Same));
    let is_divided =
        functions.len() == counted.members.len() && functions.iter().all(|list| !list.is_empty());
    if differ && is_divided {
        text.push_str(&counted::functions(counted, functions, all, width));
    }
    text
}

/// A sentence for each other command that both sessions have.
pub(super) fn sentences(timed: &Session, counted: &Session) -> Vec<String> {
    let cells = cells::all(timed);
    let base = cells.first().map_or("", |base| base.label.as_str()).to_owned();
    let others = cells.iter().skip(1).zip(timed.comparisons.iter().zip(&counted.comparisons));
    others.filter_map(|(cell, (timed, counted))| sentence([&base, &cell.label], timed, counted)).collect()
}

/// `B executes 3.1 % more instructions than A (user +1,200, kernel +0): it is slower because it does more.`
fn sentence([base, other]: [&str; 2], timed: &Comparison, counted: &Comparison) -> Option<String> {
    let times = &said::real(timed)?.result;
    // Beside other work, processor time may decide what real time does not.
    let of_processor = times.processor.as_ref().map(|row| row.verdict);
    let times = Some(times.verdict).filter(|verdict| *verdict != Verdict::Inconclusive).or(of_processor);
    let row = counted.row(&Case::plain(INSTRUCTIONS))?;
    let change = row.result.other? / row.result.base? - 1.0;
    let part = |(name, case): (&str, &str)| {
        let row = counted.row(&Case::plain(case))?;
        let adds = row.result.other? - row.result.base?;
        let sign = if adds < 0.0 { "-" } else { "+" };
        Some(format!("{name} {sign}{}", thousands(&format!("{:.0}", adds.abs()))))
    };
    let parts = [("user", USER_INSTRUCTIONS), ("kernel", KERNEL_INSTRUCTIONS)].into_iter().filter_map(part);
    let parts = parts.collect::<Vec<_>>().join(", ");
    let parts = if parts.is_empty() { parts } else { format!(" ({parts})") };
    let [is_slower, is_faster] =
        [[Verdict::Slower, Verdict::SomewhatSlower], [Verdict::Faster, Verdict::SomewhatFaster]]
            .map(|either| times.is_some_and(|verdict| either.contains(&verdict)));
    let (how, amount) = (if change < 0.0 { "fewer" } else { "more" }, percent(change.abs()));
    const ELSEWHERE: &str = "caches, branch prediction, the layout of the code, or waiting";
    let meaning = match row.result.verdict {
        Verdict::Inconclusive => {
            return Some(format!(
                "{other} and {base} execute numbers of instructions that vary too much to compare{parts}."
            ));
        }
        Verdict::Same => {
            let meaning = if is_slower || is_faster {
                let how = if is_slower { "slower" } else { "faster" };
                format!(", and is {how}: that is a matter of {ELSEWHERE}, not of more or less work")
            } else {
                String::new()
            };
            return Some(format!("{other} executes as many instructions as {base}{parts}{meaning}."));
        }
        _ if is_slower && change > 0.0 => ": it is slower because it does more".to_owned(),
        _ if is_faster && change < 0.0 => ": it is faster because it does less".to_owned(),
        _ if is_slower || is_faster => {
            format!(", and the time goes the other way: {ELSEWHERE} outweigh the work")
        }
        _ if times == Some(Verdict::Same) => ", too few for a difference of the time".to_owned(),
        _ => "; the time is undecided".to_owned(),
    };
    Some(format!("{other} executes {amount} {how} instructions than {base}{parts}{meaning}."))
}

fn verdict(comparison: &Comparison, case: &str) -> Option<Verdict> {
    comparison.row(&Case::plain(case)).map(|row| row.result.verdict)
}
