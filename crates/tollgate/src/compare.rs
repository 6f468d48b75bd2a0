//! `tollgate compare`: medians of several runs, verdicts, and the facts that differ between the environments.

use tollgate_model::compare::Verdict;
use tollgate_view::compare::{json, text};

use crate::args::{CompareArgs, FailOn, Format};
use crate::failure::Failure;
use crate::{out, store};
use tollgate_view::comparison::Comparison;

/// Compares each other run with the base.
///
/// # Errors
/// When a run cannot be read; and the condition of `--fail-on`.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let base = tollgate_store::find(&args.base)?;
    let others = store::find_all(&args.other)?;
    let comparisons: Vec<Comparison> = others.iter().map(|other| Comparison::of(&base, other)).collect();
    match args.format {
        Format::Table => out::print(&text::text(&comparisons, out::width()))?,
        Format::Json => {
            let traces = json::traces(&comparisons);
            out::print_json(&json::Document::of(&base, &comparisons, &traces))?;
        }
    }
    args.fail_on.map_or(Ok(()), |condition| check(condition, &comparisons))
}

/// Fails where a row meets the condition of `--fail-on`.
///
/// # Errors
/// The condition is met.
pub fn check(condition: FailOn, comparisons: &[Comparison]) -> Result<(), Failure> {
    let (is_met, word): (fn(Verdict) -> bool, _) = match condition {
        FailOn::Slower => (|verdict| verdict == Verdict::Slower, "slower"),
        FailOn::Faster => (|verdict| verdict == Verdict::Faster, "faster"),
        FailOn::Different => (Verdict::is_difference, "different"),
    };
    let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
    let met: Vec<String> =
        rows.filter(|row| is_met(row.result.verdict)).map(|row| row.case().to_string()).collect();
    match met.as_slice() {
        [] => Ok(()),
        [first] => Err(Failure::Condition(format!("{first} is {word}"))),
        [first, rest @ ..] => Err(Failure::Condition(format!("{first} and {} more are {word}", rest.len()))),
    }
}
