//! The setup of the lab's kernel, write by write: the value decoded, the reason, and what goes wrong otherwise.

mod item;
mod reasons;
#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use reasons::Sums;
use serde::Serialize;
use tollgate_output::figures;
use tollgate_output::table::{heading, paragraph};

use super::text;
use crate::guest::{Experiment, Fault};
use crate::setup::{Setup, Write};
use crate::{EntryRow, Results, Status};

/// The name that selects it on the command line, besides the names of experiments.
pub const BOOT: &str = "boot";
const ABOUT: &str = "The lab's kernel makes these settings before its first program runs; writes are in the order in which the interpreter meets them.";

/// The writes that set up the lab's kernel, each decoded and explained.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Boot {
    /// `boot`.
    experiment: &'static str,
    /// A sentence about the setup.
    about: &'static str,
    /// The writes, in the order in which the interpreter meets them.
    writes: Vec<WriteRecord>,
    /// The number of writes that are left out: those to the stack, to variables and to the serial port.
    others: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BootWrite"))]
struct WriteRecord {
    /// The number of instructions executed before the one that writes.
    number: u64,
    /// The processor's mode; it is in ring 0.
    mode: String,
    /// The instruction's address, in hexadecimal.
    address: String,
    /// The instruction's bytes.
    bytes: String,
    /// The instruction.
    text: String,
    /// The number of instructions that made it: consecutive entries that are alike are one write.
    instructions: u64,
    /// The place that was written.
    place: String,
    /// The value in hexadecimal, that of the first entry if there are several; or null.
    value: Option<String>,
    /// The meaning of the value.
    decoded: String,
    /// Whether the same value was written there before.
    again: bool,
    /// Why it is written, or null.
    reason: Option<String>,
    /// The section of the manual that the reason rests on, or null.
    manual: Option<&'static str>,
    /// Experiments in which this write is wrong.
    otherwise: Vec<Otherwise>,
}

/// An experiment that shows what goes wrong without a write.
#[derive(Serialize, Clone)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Otherwise {
    /// Its name.
    experiment: &'static str,
    /// A sentence about it.
    about: &'static str,
    /// How it ended in the interpreter, such as by a fault.
    outcome: String,
    /// Whether that outcome is expected.
    as_expected: bool,
}

/// Returns the experiments that show what goes wrong if a part of the setup is missing or different.
pub fn shown_by(setup: &Setup) -> Vec<&'static Experiment> {
    let sums = Sums::of(setup);
    let mut names: Vec<&str> = setup
        .writes
        .iter()
        .filter_map(|write| reasons::reason_of(&write.item, &sums))
        .flat_map(|reason| reason.otherwise)
        .copied()
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter_map(Experiment::by_name).collect()
}

impl Boot {
    /// Makes the document of a setup, and of a run of [`shown_by`].
    pub fn new(setup: &Setup, results: &Results) -> Self {
        let outcomes: BTreeMap<&str, Otherwise> =
            results.rows.iter().map(|row| (row.experiment.name, Otherwise::of(row))).collect();
        let sums = Sums::of(setup);
        let writes = setup.writes.iter().map(|write| WriteRecord::new(write, &sums, &outcomes)).collect();
        Self { experiment: BOOT, about: ABOUT, writes, others: setup.others }
    }
}

impl WriteRecord {
    fn new(write: &Write, sums: &Sums, outcomes: &BTreeMap<&str, Otherwise>) -> Self {
        let reason = reasons::reason_of(&write.item, sums);
        let shown = reason.iter().flat_map(|reason| reason.otherwise);
        Self {
            number: write.by.number,
            mode: write.by.mode.to_string(),
            address: format!("{:x}", write.by.address),
            bytes: write.by.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: write.by.text.clone(),
            instructions: write.instructions,
            place: item::place(&write.item),
            value: item::value(&write.item),
            decoded: item::decoded(&write.item),
            again: write.again,
            otherwise: shown.filter_map(|name| outcomes.get(name).cloned()).collect(),
            manual: reason.as_ref().map(|reason| reason.manual),
            reason: reason.map(|reason| reason.why.into_owned()),
        }
    }
}

impl Otherwise {
    fn of(row: &EntryRow) -> Self {
        let at = |fault: &Fault| format!("{} in ring {}", text::name(*fault), fault.ring());
        let (outcome, as_expected) = match &row.status {
            Status::Refused { fault, is_right: true } => (format!("{}, as the manual says", at(fault)), true),
            Status::Refused { fault, is_right: false } => {
                (format!("{}, which is not what the manual says", at(fault)), false)
            }
            Status::Done(rounds) => match rounds.last() {
                // Its value is what PUSHF found in ring 3.
                Some(round) if row.experiment.name == "iopl-halt" => {
                    (format!("it is done, with {:x}h in RFLAGS", round.value), true)
                }
                Some(round) => (format!("it is done, and leaves {:x}", round.value), true),
                None => ("it is done".to_owned(), true),
            },
            Status::Lacks(features) => (format!("this processor has no {}", features.join(", ")), false),
            Status::Defect(defect) => (text::defect(*defect).to_owned(), false),
            Status::NotHere(obstacle) => (text::obstacle(obstacle), false),
            Status::Wrong(mistake) => (text::mistake(*mistake), false),
        };
        let Experiment { name, about, .. } = *row.experiment;
        Self { experiment: name, about, outcome, as_expected }
    }
}

/// Formats the document as text, at most `width` columns wide.
pub fn boot(document: &Boot, width: usize) -> String {
    let mut page = heading(&format!("{}: {}", document.experiment, document.about), width);
    let mut mode = "";
    let mut said = Said::default();
    for part in document.writes.chunk_by(|one, other| one.again == other.again) {
        let again = part.iter().filter(|write| write.again).count();
        if again > MANY {
            page.push('\n');
            page.push_str(&paragraph(&repeated(again), width, "    "));
            continue;
        }
        for write in part {
            if write.mode != mode {
                mode = &write.mode;
                page.push('\n');
                page.push_str(&paragraph(&format!("In {mode}, ring 0:"), width, ""));
            }
            page.push_str(&said.write(write, width));
        }
    }
    let rest = format!(
        "{} to the kernel's stack and variables and to the serial port are left out.",
        figures::count(document.others as usize, "more write", "more writes")
    );
    page.push('\n');
    page.push_str(&paragraph(&rest, width, ""));
    page
}

/// If more than this many writes repeat earlier ones, one sentence replaces them.
const MANY: usize = 4;

fn repeated(writes: usize) -> String {
    format!(
        "Before each batch of an experiment all tables are written and loaded again, so that no experiment finds what the last \
         one broke: {writes} writes, each as above."
    )
}

/// The parts of the text so far: it describes each reason and each experiment once.
#[derive(Default)]
struct Said<'a> {
    number: usize,
    reasons: BTreeMap<&'a str, usize>,
    experiments: BTreeSet<&'a str>,
}

impl<'a> Said<'a> {
    fn write(&mut self, write: &'a WriteRecord, width: usize) -> String {
        self.number += 1;
        let WriteRecord { place, value, decoded, address, text, instructions, .. } = write;
        let value = value.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
        let hang = format!("{:3} ", self.number);
        let mut page = paragraph(&format!("{place}{value}: {decoded}"), width, &hang);
        let times = match instructions {
            1 => String::new(),
            more => format!("; {more} instructions"),
        };
        page.push_str(&paragraph(&format!("at {address}  {text}{times}"), width, "      "));
        if write.again {
            page.push_str(&paragraph("As before.", width, "    "));
            return page;
        }
        if let Some((reason, manual)) = write.reason.as_deref().zip(write.manual) {
            let number = self.number;
            let first = *self.reasons.entry(reason).or_insert(number);
            let reason = if first == number {
                format!("{reason} ({manual})")
            } else {
                format!("The reason is that of {first}.")
            };
            page.push_str(&paragraph(&reason, width, "    "));
        }
        for Otherwise { experiment, about, outcome, .. } in &write.otherwise {
            let about = if self.experiments.insert(experiment) {
                format!("{}: ", about.trim_end_matches('.'))
            } else {
                String::new()
            };
            page.push_str(&paragraph(&format!("{experiment}: {about}{outcome}."), width, "    ! "));
        }
        page
    }
}
