//! The data of a published experiment.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::DeflateDecoder;
use serde::Deserialize;

use crate::quantity::{Quantity, fact_of};

/// A published experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name: subject and year.
    pub id: String,
    /// What was asked.
    pub title: String,
    /// Who published it, and where.
    pub source: String,
    /// The machine of the figures.
    #[serde(default)]
    pub machine: String,
    /// What was timed, and how the figures were made of it.
    #[serde(default)]
    pub work: String,
    /// How this machine's figures are made, as far as they differ.
    #[serde(default)]
    pub here: String,
    /// The figures.
    #[serde(default)]
    pub tables: Vec<Grid>,
    /// What the source says without a figure.
    #[serde(default)]
    pub statements: Vec<String>,
    /// Bytes and programs as they stand in the source.
    #[serde(default)]
    pub listings: Vec<Listing>,
    /// What other verbs of the program are asked by `--check`.
    #[serde(default)]
    pub asks: Vec<Ask>,
    /// What the figures are used for.
    pub claims: Vec<Claim>,
    /// Where the source is wrong.
    #[serde(default)]
    pub errors: Vec<Mistake>,
    /// What of it is easily misread, or measured with less care than it needs.
    #[serde(default)]
    pub remarks: Vec<Mistake>,
    /// What the source leaves open.
    #[serde(default)]
    pub questions: Vec<Question>,
}

/// A question that a verb of the program answers in JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Its name, which is unique among all experiments.
    pub name: String,
    /// The arguments of the program. [`Ask::FIXED`] stands for the path of a program that is linked to a fixed address.
    pub words: Vec<String>,
    /// How long it takes, in words.
    pub takes: String,
    /// What is read of the answer: a name, and a JSON pointer (RFC 6901). A [`Quantity`] has it by `told`, as `NAME.WHAT`.
    pub tells: BTreeMap<String, String>,
}

impl Ask {
    /// Stands for a program.
    pub const FIXED: &str = "{fixed}";

    /// The names of the facts that a run has its answer in, each with its pointer.
    pub fn facts(&self) -> impl Iterator<Item = (String, &str)> {
        self.tells.iter().map(|(what, pointer)| (fact_of(&format!("{}.{what}", self.name)), pointer.as_str()))
    }
}

/// A table in the shape of the source.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Its heading.
    pub title: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, as long as the columns are many.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A figure as it was printed, or a word.
    Printed(String),
    /// This machine's.
    Here(Box<Quantity>),
}

/// Lines of the source, or the listing of a built-in program of `tollgate schedules`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Its heading.
    pub title: String,
    /// Its lines.
    #[serde(default)]
    pub lines: Vec<String>,
    /// The program that has the listing.
    #[serde(default)]
    pub schedule: String,
}

/// A statement that the figures are used for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// The statement.
    pub text: String,
    /// The figures that the source rests it on.
    #[serde(default)]
    pub figures: String,
    /// It holds where all of these do. With none it cannot be told.
    #[serde(default)]
    pub holds: Vec<Condition>,
    /// Why it cannot be told here, or what of it the conditions do not test.
    #[serde(default)]
    pub cannot: String,
}

/// A condition of a claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// What is compared, in words.
    pub what: String,
    /// The quantity.
    pub of: Quantity,
    /// It holds where the quantity is no less.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// It holds where the quantity is no more.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// It holds where the quantity's words are these.
    #[serde(default)]
    pub is: Option<String>,
    /// Why nothing follows where it does not hold.
    #[serde(default)]
    pub unless: String,
}

/// A sentence of the source, and what is so.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// What it says or leaves out.
    pub says: String,
    /// What is so, with the evidence.
    pub evidence: Vec<Words>,
}

/// A question that the source leaves open.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: Vec<Words>,
}

/// A part of an answer.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// What holds on every machine, with its source.
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
        /// The figures.
        with: Vec<Quantity>,
    },
}

/// Files that the build deflated into one: a name, NUL, a text, NUL, for each.
pub(crate) struct Files {
    deflated: &'static [u8],
    inflated: OnceLock<String>,
}

impl Files {
    pub(crate) const fn of(deflated: &'static [u8]) -> Self {
        Self { deflated, inflated: OnceLock::new() }
    }

    /// Each name with its text.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = self.inflated.get_or_init(|| {
            let mut text = String::new();
            // What the build wrote can be read; a name that is not found says so.
            let _ = DeflateDecoder::new(self.deflated).read_to_string(&mut text);
            text
        });
        let mut parts = text.split('\0');
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// The text of a file; None where there is none of this name.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.all().find(|(known, _)| *known == name).map(|(_, text)| text)
    }
}

/// The files of `claims/`.
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
    /// The names of the built-in experiments.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().copied()
    }

    /// The built-in experiment of this name; None where there is none.
    ///
    /// # Errors
    /// As [`Experiment::read`], with the name of the file.
    pub fn named(name: &str) -> Option<Result<Self, String>> {
        Some(Self::read(FILES.text_of(name)?).map_err(|why| format!("claims/{name}.json: {why}")))
    }

    /// Reads the text of an experiment.
    ///
    /// # Errors
    /// A text that is none; the row of a table that is not as long as the columns are many.
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

    /// Every quantity of it.
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
