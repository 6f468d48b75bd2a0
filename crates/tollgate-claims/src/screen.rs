//! Formats experiments as text: the verdicts on all claims, then each experiment.

use std::borrow::Cow;

use tollgate_output::figures::count;
use tollgate_output::table::{Look, Table, heading, paragraph, styled};
use tollgate_view::screen;
use unicode_width::UnicodeWidthStr;

use crate::data::Experiment;
use crate::known::Known;
use crate::told::{Answered, Told, ToldClaim, ToldTable, told};
use crate::verdict::Verdict;

/// Formats the experiments as text. If there are several, the verdicts come first.
pub fn screen(experiments: &[Experiment], known: &Known, width: usize) -> String {
    let all: Vec<Told> = experiments.iter().map(|experiment| told(experiment, known)).collect();
    let mut text = here(known, width);
    if all.len() > 1 {
        text.push('\n');
        text.push_str(&verdicts(&all, width));
    }
    for one in &all {
        text.push('\n');
        text.push_str(&of_one(one, width));
    }
    text
}

fn here(known: &Known, width: usize) -> String {
    let Some(first) = known.runs.first() else {
        let words = "No run is kept yet, so this machine's figures are missing. `tollgate run` measures most of them, and --check those that a claim needs.";
        return paragraph(words, width, "");
    };
    let lines = screen::machine(first);
    let runs: Vec<String> = known.runs.iter().map(|summary| summary.run.id.to_string()).collect();
    let mut text = paragraph(&lines.join("; "), width, "here: ");
    text.push_str(&paragraph(
        &format!("by {} {}", if runs.len() == 1 { "run" } else { "runs" }, runs.join(", ")),
        width,
        "      ",
    ));
    text
}

fn verdicts(all: &[Told], width: usize) -> String {
    const COLUMNS: [&str; 2] = ["claim", "here"];
    let mut table = Table::new(&COLUMNS).with_words(&COLUMNS);
    for one in all {
        table.heading(&one.id);
        for claim in &one.claims {
            table.row(
                look(claim.verdict),
                &[format!("  {}", claim.id), claim.verdict.in_words().to_owned()],
                &[],
            );
        }
    }
    let claims: Vec<&ToldClaim> = all.iter().flat_map(|one| &one.claims).collect();
    let of = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let sum = format!(
        "{}: {} hold here, {} in part, {} do not, {} cannot be told here.",
        count(claims.len(), "claim", "claims"),
        of(Verdict::Holds) + of(Verdict::HoldsAndMore),
        of(Verdict::InPart),
        of(Verdict::DoesNotHold),
        of(Verdict::CannotBeTold)
    );
    format!("{}{}", table.render(width), paragraph(&sum, width, ""))
}

fn look(verdict: Verdict) -> Look {
    match verdict {
        Verdict::Holds | Verdict::HoldsAndMore | Verdict::InPart => Look::Plain,
        Verdict::DoesNotHold => Look::Coloured,
        Verdict::CannotBeTold => Look::Faint,
    }
}

fn of_one(one: &Told, width: usize) -> String {
    let mut text = heading(&format!("{}: {}", one.id, one.title), width);
    let about =
        [("source: ", &one.source), ("there: ", &one.machine), ("work: ", &one.work), ("here: ", &one.here)];
    for (name, said) in about.into_iter().filter(|(_, said)| !said.is_empty()) {
        text.push_str(&paragraph(said, width, name));
    }
    for table in &one.tables {
        text.push('\n');
        text.push_str(&of_table(table, width));
    }
    if !one.statements.is_empty() {
        text.push('\n');
        text.push_str(&heading("stated without a figure", width));
    }
    for statement in &one.statements {
        text.push_str(&paragraph(statement, width, "- "));
    }
    for listing in &one.listings {
        text.push('\n');
        text.push_str(&heading(&listing.title, width));
        for line in &listing.lines {
            text.push_str(&if line.width() + 2 <= width {
                styled(Look::Plain, &format!("  {line}"))
            } else {
                paragraph(line, width, "  ")
            });
        }
    }
    text.push('\n');
    text.push_str(&heading("claims", width));
    for claim in &one.claims {
        text.push_str(&of_claim(claim, width));
    }
    text.push_str(&answered("errors of the source", &one.errors, width));
    text.push_str(&answered("remarks on the source", &one.remarks, width));
    text.push_str(&answered("questions left open", &one.questions, width));
    text
}

fn of_table(table: &ToldTable, width: usize) -> String {
    let owned = |name: &String| Cow::Owned(name.clone());
    let is_figure =
        |cell: &str| cell == "none" || cell.starts_with(|c: char| c.is_ascii_digit() || "-–<>".contains(c));
    let holds_words = |at: &usize| {
        table.rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_empty() && !is_figure(cell)))
    };
    let words = (1..table.columns.len()).filter(holds_words).map(|at| owned(&table.columns[at])).collect();
    let mut lines = Table::of_columns(table.columns.iter().map(owned).collect()).with_words_in(words);
    for row in &table.rows {
        lines.row(Look::Plain, row, &[]);
    }
    let mut text = format!("{}{}", heading(&table.title, width), lines.render(width));
    for (at, note) in table.notes.iter().enumerate() {
        text.push_str(&paragraph(note, width, &format!("[{}] ", at + 1)));
    }
    text
}

fn of_claim(claim: &ToldClaim, width: usize) -> String {
    let mut text = styled(look(claim.verdict), &format!("{}: {}", claim.id, claim.verdict.in_words()));
    text.push_str(&paragraph(&claim.text, width, "  "));
    if !claim.figures.is_empty() {
        text.push_str(&paragraph(&claim.figures, width, "  there: "));
    }
    for because in &claim.because {
        text.push_str(&paragraph(because, width, "  here: "));
    }
    text
}

fn answered(title: &str, all: &[Answered], width: usize) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}", heading(title, width));
    for one in all {
        text.push_str(&paragraph(&one.says, width, "- "));
        for answer in &one.answer {
            text.push_str(&paragraph(answer, width, "  "));
        }
    }
    text
}
