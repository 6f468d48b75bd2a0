//! The evaluation of an experiment: published figures and this machine's, the verdicts, and the answers.

use serde::Serialize;
use tollgate_suites::matches;
use tollgate_view::rules;
use tollgate_view::summary::Summary;

use crate::data::{Cell, Experiment, Grid, Listing, Words};
use crate::figure::Answer;
use crate::known::Known;
use crate::quantity::Missing;
use crate::verdict::{Verdict, judged};

/// An experiment with this machine's figures.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PublishedExperiment"))]
pub struct Told {
    /// Its name.
    pub id: String,
    /// The question of the experiment.
    pub title: String,
    /// Who published it, and where.
    pub source: String,
    /// The machine of the published figures. This and the next two are empty if there are no published figures.
    pub machine: String,
    /// The work that was timed.
    pub work: String,
    /// How this machine's figures are measured.
    pub here: String,
    /// The tables of figures.
    pub tables: Vec<ToldTable>,
    /// Statements of the source that have no figure.
    pub statements: Vec<String>,
    /// The bytes and programs that it prints.
    pub listings: Vec<ToldListing>,
    /// The claims.
    pub claims: Vec<ToldClaim>,
    /// The errors of the source.
    pub errors: Vec<Answered>,
    /// Points of the source that need care.
    pub remarks: Vec<Answered>,
    /// The questions that it leaves open.
    pub questions: Vec<Answered>,
}

/// A table; this machine's figures are in its cells.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TableOfClaims"))]
pub struct ToldTable {
    /// Its heading.
    pub title: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The cells, as the table shows them; `[1]` in a cell refers to the first of the notes.
    pub rows: Vec<Vec<String>>,
    /// Why some figures are missing, and which run others are from.
    pub notes: Vec<String>,
}

/// A listing.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Listing"))]
pub struct ToldListing {
    /// Its heading.
    pub title: String,
    /// Its lines.
    pub lines: Vec<String>,
}

/// A claim.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Claim"))]
pub struct ToldClaim {
    /// Its name.
    pub id: String,
    /// The statement.
    pub text: String,
    /// The published figures.
    pub figures: String,
    /// The verdict here.
    pub verdict: Verdict,
    /// The evidence for the verdict.
    pub because: Vec<String>,
}

/// A statement or question of a source, with the answer.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AnsweredClaim"))]
pub struct Answered {
    /// The statement or question of the source.
    pub says: String,
    /// The answers, of one or more sentences each.
    pub answer: Vec<String>,
}

/// The experiments as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Claims"))]
pub struct ClaimsDocument {
    /// The runs that figures are taken from, in the order in which they are searched.
    pub runs: Vec<String>,
    /// The [published experiments](claims.md).
    pub experiments: Vec<Told>,
}

impl ClaimsDocument {
    /// Evaluates all experiments.
    pub fn new(experiments: &[Experiment], known: &Known) -> Self {
        let runs = known.runs.iter().map(|summary| summary.run.id.to_string()).collect();
        Self { runs, experiments: experiments.iter().map(|experiment| told(experiment, known)).collect() }
    }
}

/// Evaluates an experiment.
pub fn told(experiment: &Experiment, known: &Known) -> Told {
    let claims = experiment.claims.iter().map(|claim| {
        let judged = judged(claim, known);
        ToldClaim {
            id: claim.id.clone(),
            text: claim.text.clone(),
            figures: claim.figures.clone(),
            verdict: judged.verdict,
            because: judged.because,
        }
    });
    let answered = |says: &str, words: &[Words]| Answered {
        says: says.to_owned(),
        answer: words.iter().flat_map(|words| answers(words, known)).collect(),
    };
    Told {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        machine: experiment.machine.clone(),
        work: experiment.work.clone(),
        here: experiment.here.clone(),
        tables: experiment.tables.iter().map(|grid| table(grid, known)).collect(),
        statements: experiment.statements.clone(),
        listings: experiment.listings.iter().map(listing).collect(),
        claims: claims.collect(),
        errors: experiment.errors.iter().map(|one| answered(&one.says, &one.evidence)).collect(),
        remarks: experiment.remarks.iter().map(|one| answered(&one.says, &one.evidence)).collect(),
        questions: experiment.questions.iter().map(|open| answered(&open.question, &open.answer)).collect(),
    }
}

fn table(grid: &Grid, known: &Known) -> ToldTable {
    let mut notes = Vec::new();
    let mut noted = |note: String| match notes.iter().position(|other| *other == note) {
        Some(at) => at + 1,
        None => {
            notes.push(note);
            notes.len()
        }
    };
    let mut cell = |cell: &Cell| match cell {
        Cell::Printed(text) => text.clone(),
        Cell::Here(quantity) => match quantity.evaluate(known) {
            Ok((answer, at)) => {
                let whence = (at > 0).then(|| known.whence(at));
                let notes = answer.modes_in_words().into_iter().chain(whence);
                notes.fold(answer.in_short(), |text, note| format!("{text} [{}]", noted(note)))
            }
            Err(Missing { why, .. }) => format!("– [{}]", noted(why)),
        },
    };
    let rows = grid.rows.iter().map(|row| row.iter().map(&mut cell).collect()).collect();
    ToldTable { title: grid.title.clone(), columns: grid.columns.clone(), rows, notes }
}

fn listing(listing: &Listing) -> ToldListing {
    let subject = tollgate_schedules::subjects().find(|subject| subject.name() == listing.schedule);
    let of_program = subject.map(|subject| subject.listing()).unwrap_or_default();
    let lines = listing.lines.iter().cloned().chain(of_program.lines().map(str::to_owned));
    ToldListing { title: listing.title.clone(), lines: lines.collect() }
}

fn answers(words: &Words, known: &Known) -> Vec<String> {
    match words {
        Words::Text(text) => vec![text.clone()],
        Words::Finding { finding } => found(finding, known),
        Words::Filled { words, with } => vec![filled(words, with, known)],
    }
}

/// Returns the findings that rest on a case, from the first run that has some.
fn found(pattern: &str, known: &Known) -> Vec<String> {
    let of_run = |summary: &Summary| {
        let found = rules::findings(summary).into_iter();
        let found = found.filter(|finding| finding.from.iter().any(|case| matches(pattern, case)));
        found.map(|finding| finding.sentence).collect::<Vec<String>>()
    };
    let mut each = known.runs.iter().map(of_run);
    each.find(|sentences| !sentences.is_empty()).unwrap_or_default()
}

/// Fills the figures into the sentence. If one is missing, says why instead.
fn filled(words: &str, with: &[crate::quantity::Quantity], known: &Known) -> String {
    let mut text = String::new();
    let mut parts = words.split("{}");
    text.push_str(parts.next().unwrap_or_default());
    for (part, quantity) in parts.zip(with) {
        match quantity.evaluate(known) {
            Ok((Answer::Figure(figure), _)) => text.push_str(&figure.with_interval()),
            Ok((Answer::Words(words), _)) => text.push_str(&words),
            Err(missing) => return format!("Not decidable by figures of this machine: {}.", missing.why),
        }
        text.push_str(part);
    }
    text
}
