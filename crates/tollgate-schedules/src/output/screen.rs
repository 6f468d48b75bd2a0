use tollgate_model::text::clean;
use tollgate_output::figures;
use tollgate_output::table::{Look, Table, heading, paragraph};

use super::outcome::{Outcome, Played};
use super::{figure, text};
use crate::subject::{Correction, FinalState, Group, Wish};
use crate::{Checked, Harm, Subject};

const LISTING: &str = "    ";

/// Shows all outcomes, one per line.
pub fn table(outcomes: &[Outcome], width: usize) -> String {
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
    if let Some(said) = text::without_preemption(outcomes) {
        let rule = "Without preemption in user mode: a process keeps its processor through the lock's code, and an interrupt goes back \
                    to it.";
        text.push_str(&paragraph(&format!("{rule} {said}"), width, ""));
    }
    text.push_str(&paragraph(&text::counter(outcomes), width, ""));
    text
}

/// Shows one outcome with its program and counterexample.
pub fn detail(outcome: &Outcome, width: usize) -> String {
    let checked = &outcome.checked;
    let mut text = introduction(outcome.subject, width);
    text.push_str(&paragraph(&text::answer(outcome), width, ""));
    if let Some(expected) = outcome.surprise() {
        text.push_str(&paragraph(&format!("expected: {}", text::verdict(expected)), width, "! "));
    }
    if outcome.subject.condition().is_some() {
        text.push_str(&final_states(checked, width));
    }
    let shown = outcome.subject.shown();
    let alone =
        shown.as_ref().is_some_and(|(_, schedule)| schedule.steps.iter().all(|step| step.process != Some(1)));
    // A schedule without a rival ends with its work.
    if let Some(cost) = outcome.subject.cost().filter(|_| !alone) {
        text.push_str(&format!("\n{}", paragraph(&text::work(&cost), width, "")));
    }
    if let Some((point, schedule)) = shown {
        let preempted = format!("Its schedule: A is preempted before instruction {point}.");
        let said = if alone { "Its schedule: A takes the lock alone." } else { &preempted };
        text.push('\n');
        text.push_str(&paragraph(said, width, ""));
        text.push('\n');
        text.push_str(&figure::draw(&schedule, checked.setting.processors, width));
        return text;
    }
    let Some((worst, others)) = checked.counterexamples.split_first() else { return text };
    text.push('\n');
    text.push_str(&figure::draw(worst, checked.setting.processors, width));
    for other in others {
        let Some(harm) = other.harm else { continue };
        let steps = figures::count(other.steps.len(), "step", "steps");
        text.push_str(&paragraph(&format!("Also: {harm}, after {steps}."), width, ""));
    }
    if outcome.subject.condition().is_some() {
        return text;
    }
    // The other harms may still be impossible.
    let never: Vec<String> =
        Harm::ALL.into_iter().filter(|&harm| checked.never(harm)).map(|harm| harm.to_string()).collect();
    if !never.is_empty() {
        text.push_str(&paragraph(&format!("Never: {}.", never.join("; ")), width, ""));
    }
    text
}

/// Shows the final states of a litmus test like herd7; a star marks those in which the condition holds.
fn final_states(checked: &Checked, width: usize) -> String {
    let outcomes = &checked.outcomes;
    let holding = outcomes.iter().filter(|outcome| outcome.holds).count();
    let observation = match holding {
        // States that were not visited may differ.
        _ if !checked.complete => "not complete",
        0 => "observation: Never",
        _ if holding == outcomes.len() => "observation: Always",
        _ => "observation: Sometimes",
    };
    let states = figures::count(outcomes.len(), "final state", "final states");
    let head = format!("{states} (* the condition holds); {observation}");
    let mut text = format!("\n{}", paragraph(&head, width, ""));
    for FinalState { values, holds } in outcomes {
        text.push_str(&paragraph(values, width, if *holds { "  * " } else { "    " }));
    }
    text
}

fn introduction(subject: &dyn Subject, width: usize) -> String {
    let mut text = heading(subject.name(), width);
    text.push_str(&paragraph(subject.about(), width, ""));
    text.push('\n');
    for line in subject.listing().lines() {
        let line: Vec<char> = clean(line).chars().collect();
        // A line that is too long is broken anywhere.
        for piece in line.chunks(width.saturating_sub(LISTING.len()).max(1)) {
            text.push_str(&format!("{LISTING}{}\n", piece.iter().collect::<String>()));
        }
    }
    text.push('\n');
    text.push_str(&corrections(subject.corrections(), width));
    text
}

fn corrections(corrections: &[Correction], width: usize) -> String {
    if corrections.is_empty() {
        return String::new();
    }
    let mut text = paragraph("Read differently than written:", width, "");
    for Correction { line, text: correction } in corrections {
        text.push_str(&paragraph(&format!("line {line}: {}", clean(correction)), width, "  "));
    }
    text.push('\n');
    text
}

/// Shows the schedule of one preemption, or the outcome of each.
pub fn plays(subject: &dyn Subject, plays: &[Played], all: bool, width: usize) -> String {
    let mut text = introduction(subject, width);
    let processors = subject.setting(Wish::default()).map_or(1, |setting| setting.processors);
    for Played { point, counterexample } in plays {
        if all {
            let mark = if counterexample.harm.is_some() { '!' } else { ' ' };
            let so = figure::sentence(&counterexample.so);
            text.push_str(&paragraph(&so, width, &format!("{mark} {point:2}  ")));
        } else {
            text.push_str(&paragraph(&format!("A is preempted before instruction {point}."), width, ""));
            text.push('\n');
            text.push_str(&figure::draw(counterexample, processors, width));
        }
    }
    text
}
