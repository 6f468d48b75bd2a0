//! `tollgate schedules`: every interleaving of a lock on a small machine, and its violations.

mod checks;
mod chosen;
mod figure;
mod json;
mod plays;
mod text;

use tollgate_schedules::subject::{Group, Wish};
use tollgate_schedules::{Harm, Limits, Subject, Verdict};

use crate::args::{FailOnLock, Format, SchedulesArgs};
use crate::failure::Failure;
use crate::table::{Look, Table, heading, paragraph};
use crate::{figures, out, say};
use checks::Outcome;
use json::{Document, Record};

/// In front of a program's lines.
const LISTING: &str = "    ";

/// Checks the chosen programs, or plays one forward, and prints the result.
///
/// # Errors
/// An unknown program or an impossible setting; and the condition of `--fail-on`.
pub fn schedules(args: &SchedulesArgs) -> Result<(), Failure> {
    let subjects = chosen::chosen(&args.program)?;
    if let Some(preempt) = args.preempt {
        return plays::play(&subjects, preempt, args);
    }
    let wish = Wish { processes: args.processes, rounds: args.rounds, processors: args.processors };
    let states = args.max_states.unwrap_or(Limits::default().states);
    let outcomes = checks::check(&subjects, wish, states)?;
    match args.format {
        Format::Json => {
            let programs = outcomes.iter().map(Record::of_check).collect();
            out::print_json(&Document { programs })?;
        }
        Format::Table if args.program.is_empty() => out::print(&table(&outcomes, out::width()))?,
        Format::Table => {
            let each: Vec<String> = outcomes.iter().map(|outcome| detail(outcome, out::width())).collect();
            out::print(&each.join("\n"))?;
        }
    }
    let failed = outcomes.iter().filter(|outcome| outcome.checked.verdict != Verdict::Holds);
    let failed: Vec<String> = failed.map(text::fault).collect();
    args.fail_on.map_or(Ok(()), |FailOnLock::Violated| conclude(&failed))
}

/// The condition of `--fail-on violated`, with the programs that do not hold.
fn conclude(failed: &[String]) -> Result<(), Failure> {
    match failed {
        [] => Ok(()),
        [only] => Err(Failure::Condition(only.clone())),
        [first, rest @ ..] => {
            let others = figures::count(rest.len(), "other does", "others do");
            Err(Failure::Condition(format!("{first}, and {others} not hold")))
        }
    }
}

/// All of them, a line each.
fn table(outcomes: &[Outcome], width: usize) -> String {
    let mut table = Table::new(&["program", "setting", "verdict", "states", "time"])
        .with_words(&["setting", "verdict"])
        .with_dispensable(2);
    let mut headed: Option<Group> = None;
    for outcome in outcomes {
        let (subject, checked) = (outcome.subject, &outcome.checked);
        if headed.replace(subject.group()) != Some(subject.group()) {
            table.heading(text::group(subject.group()));
        }
        let setting = checked.setting;
        let cells = [
            format!("  {}", subject.name()),
            format!("{}×{}×{}", setting.processes, setting.rounds, setting.processors),
            text::verdict(checked.verdict).to_owned(),
            checked.states.to_string(),
            text::time(outcome.seconds),
        ];
        match outcome.surprise() {
            Some(expected) => {
                table.row(Look::Flagged, &cells, &[format!("expected: {}", text::verdict(expected))]);
            }
            None => table.row(Look::Plain, &cells, &[]),
        }
    }
    let mut text = table.render(width);
    text.push('\n');
    text.push_str(&paragraph("setting: processes × rounds of each × processors", width, ""));
    text.push_str(&paragraph(&text::counter(outcomes), width, ""));
    text
}

/// One of them, with its program and its counterexample.
fn detail(outcome: &Outcome, width: usize) -> String {
    let checked = &outcome.checked;
    let mut text = introduction(outcome.subject, width);
    text.push_str(&paragraph(&text::answer(outcome), width, ""));
    if let Some(expected) = outcome.surprise() {
        text.push_str(&paragraph(&format!("expected: {}", text::verdict(expected)), width, "! "));
    }
    let Some((worst, others)) = checked.counterexamples.split_first() else { return text };
    text.push('\n');
    text.push_str(&figure::draw(worst, checked.setting.processors, width));
    for other in others {
        let Some(harm) = other.harm else { continue };
        let steps = figures::count(other.steps.len(), "step", "steps");
        text.push_str(&paragraph(&format!("Also: {harm}, after {steps}."), width, ""));
    }
    // The other harms may still be impossible.
    let never: Vec<String> =
        Harm::ALL.into_iter().filter(|&harm| checked.never(harm)).map(|harm| harm.to_string()).collect();
    if !never.is_empty() {
        text.push_str(&paragraph(&format!("Never: {}.", never.join("; ")), width, ""));
    }
    text
}

/// The description of a program, and its listing.
fn introduction(subject: &dyn Subject, width: usize) -> String {
    let mut text = heading(subject.name(), width);
    text.push_str(&paragraph(subject.about(), width, ""));
    text.push('\n');
    for line in subject.listing().lines() {
        let line: Vec<char> = say::clean(line).chars().collect();
        // A line that is too long is broken anywhere.
        for piece in line.chunks(width.saturating_sub(LISTING.len()).max(1)) {
            text.push_str(&format!("{LISTING}{}\n", piece.iter().collect::<String>()));
        }
    }
    text.push('\n');
    text
}
