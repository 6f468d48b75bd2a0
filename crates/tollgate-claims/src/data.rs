//! The data of a published experiment, as `claims/*.json` has it.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;
use serde::Deserialize;

use crate::quantity::{Quantity, fact_of};

/// A published experiment: a file of `claims/`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Subject and year, as in `ram-block-device-2017`.
    pub id: String,
    /// The question that the experiment asked.
    pub title: String,
    /// Authors, and place of publication.
    pub source: String,
    /// The machine on which the published figures were measured.
    #[serde(default)]
    pub machine: String,
    /// The operation that was timed, and how the figures were computed from the times.
    #[serde(default)]
    pub work: String,
    /// How this machine's figures are made, if differently.
    #[serde(default)]
    pub here: String,
    /// The tables of the source.
    #[serde(default)]
    pub tables: Vec<Grid>,
    /// Statements of the source that have no figure.
    #[serde(default)]
    pub statements: Vec<String>,
    /// Bytes and programs as the source prints them.
    #[serde(default)]
    pub listings: Vec<Listing>,
    /// Questions that `--check` answers by other verbs of the program.
    #[serde(default)]
    pub asks: Vec<Ask>,
    /// The statements that the source supports by its figures.
    pub claims: Vec<Claim>,
    /// Errors of the source.
    #[serde(default)]
    pub errors: Vec<Mistake>,
    /// Remarks: parts that are easily misread, or were measured with less care than they need.
    #[serde(default)]
    pub remarks: Vec<Mistake>,
    /// Questions that the source leaves open.
    #[serde(default)]
    pub questions: Vec<Question>,
}

/// A question that a verb of the program answers in JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// A name, unique among all experiments.
    pub name: String,
    /// The arguments of the program. [`Ask::FIXED`] stands for the path of a program that is linked to a fixed address.
    pub words: Vec<String>,
    /// How long the verb runs, in words.
    pub takes: String,
    /// The values to read from the answer: a name, and a JSON pointer (RFC 6901). The field `told` of a [`Quantity`]
    /// refers to one as `NAME.WHAT`.
    pub tells: BTreeMap<String, String>,
}

impl Ask {
    /// The placeholder for the path of a program in [`Ask::words`].
    pub const FIXED: &str = "{fixed}";

    /// Returns the names of the facts that keep the answer in a run, each with its JSON pointer.
    pub fn facts(&self) -> impl Iterator<Item = (String, &str)> {
        self.tells.iter().map(|(what, pointer)| (fact_of(&format!("{}.{what}", self.name)), pointer.as_str()))
    }
}

/// A table in the shape of the source's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Heading of the table.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A figure or a word as the source prints it.
    Printed(String),
    /// A figure of this machine.
    Here(Box<Quantity>),
}

/// Lines of the source, or the listing of a built-in program of `tollgate schedules`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Heading of the listing.
    pub title: String,
    /// Lines of the source.
    #[serde(default)]
    pub lines: Vec<String>,
    /// Name of the program in `tollgate schedules`; empty if `lines` is the listing.
    #[serde(default)]
    pub schedule: String,
}

/// A statement that the source supports by its figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// A short name.
    pub id: String,
    /// The statement, as a sentence.
    pub text: String,
    /// The published figures that support it.
    #[serde(default)]
    pub figures: String,
    /// The claim holds if all of these do. Without conditions it cannot be judged here.
    #[serde(default)]
    pub holds: Vec<Condition>,
    /// Why it cannot be judged here, or which part of it the conditions do not test.
    #[serde(default)]
    pub cannot: String,
}

/// A condition of a claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The comparison, in words.
    pub what: String,
    /// The quantity that is compared.
    pub of: Quantity,
    /// The condition holds if the quantity is at least this.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// The condition holds if the quantity is at most this.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// The condition holds if the quantity is this word.
    #[serde(default)]
    pub is: Option<String>,
    /// Why nothing follows if the condition does not hold.
    #[serde(default)]
    pub unless: String,
}

/// A sentence of the source, and its correction.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// The sentence, or what it leaves out.
    pub says: String,
    /// The correction, with its evidence.
    pub evidence: Vec<Words>,
}

/// A question that the source leaves open.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question, as a sentence.
    pub question: String,
    /// The answer, in parts.
    pub answer: Vec<Words>,
}

/// A part of an answer.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// A text that holds on every machine, with its source.
    Text(String),
    /// The findings of a run that rest on a case.
    Finding {
        /// The pattern of the case.
        finding: String,
    },
    /// A sentence with a figure of this machine for each `{}`.
    Filled {
        /// The sentence.
        words: String,
        /// The figures, one for each `{}`.
        with: Vec<Quantity>,
    },
}

/// Files that the build deflated into one: name, NUL, text, NUL for each.
pub(crate) struct Files {
    deflated: &'static [u8],
    inflated: OnceLock<String>,
}

impl Files {
    pub(crate) const fn of(deflated: &'static [u8]) -> Self {
        Self { deflated, inflated: OnceLock::new() }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = self.inflated.get_or_init(|| {
            let mut text = String::new();
            // The build wrote this, so it inflates. If it does not, the name is reported as not found.
            let _ = DeflateDecoder::new(self.deflated).read_to_string(&mut text);
            text
        });
        let mut parts = text.split('\0');
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.all().find(|(known, _)| *known == name).map(|(_, text)| text)
    }
}

static FILES: Files = Files::of(include_bytes!(concat!(env!("OUT_DIR"), "/claims.deflated")));

/// The names of the files, in the order in which they are listed.
const NAMES: &[&str] = &[
    "windows-kernel-entry-2005",
    "invalid-opcode-emulation-2007",
    "syscall-vs-interrupt-2021",
    "ryzen-cache-thrashing-2017",
    "wsl-vs-vm-development-2017",
    "wsl-vs-native-2017",
    "aslr-kaslr-2017",
    "linuxkit-kernel-2017",
    "ram-block-device-2017",
    "direct-io-buffer-2017",
    "ps2-user-level-test-and-set-2000",
];

impl Experiment {
    /// Returns the names of the built-in experiments, in the order in which they are listed.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().copied()
    }

    /// Returns the built-in experiment of this name, `None` if there is none.
    ///
    /// # Errors
    /// As [`Experiment::read`], with the name of the file.
    pub fn named(name: &str) -> Option<Result<Self, String>> {
        Some(Self::read(FILES.text_of(name)?).map_err(|why| format!("claims/{name}.json: {why}")))
    }

    /// Reads an experiment from its JSON text.
    ///
    /// # Errors
    /// Fails if the text is not an experiment, or if a row of a table has more or fewer cells than columns.
    pub fn read(text: &str) -> Result<Self, String> {
        let experiment: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for grid in &experiment.tables {
            if let Some(at) = grid.rows.iter().position(|row| row.len() != grid.columns.len()) {
                let (row, columns) = (grid.rows[at].len(), grid.columns.len());
                return Err(format!(
                    "row {} of {:?} has {row} cells for {columns} columns",
                    at + 1,
                    grid.title
                ));
            }
        }
        Ok(experiment)
    }

    /// Returns the quantities of all its tables, conditions and answers.
    pub fn quantities(&self) -> Vec<&Quantity> {
        let cells = self.tables.iter().flat_map(|grid| grid.rows.iter().flatten());
        let cells = cells.filter_map(|cell| match cell {
            Cell::Here(quantity) => Some(&**quantity),
            Cell::Printed(_) => None,
        });
        let conditions =
            self.claims.iter().flat_map(|claim| claim.holds.iter().map(|condition| &condition.of));
        let words = self.errors.iter().chain(&self.remarks).flat_map(|mistake| &mistake.evidence);
        let words = words.chain(self.questions.iter().flat_map(|question| &question.answer));
        let filled = words.flat_map(|words| match words {
            Words::Filled { with, .. } => with.as_slice(),
            Words::Text(_) | Words::Finding { .. } => &[],
        });
        cells.chain(conditions).chain(filled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed() {
        let mut listed = NAMES.to_vec();
        listed.sort_unstable();
        let files: Vec<&str> = FILES.all().map(|(name, _)| name).collect();
        assert_eq!(files, listed);
    }
}
