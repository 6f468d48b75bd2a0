use serde::Serialize;
use tollgate_output::table::{heading, paragraph};
use tollgate_x86::Vendor;
use tollgate_x86::walk::Fault;

use super::text;
use crate::guest::{Expected, Experiment};
use crate::{Change, Moment};

/// The trace of an operation.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explained {
    /// The experiment's name.
    experiment: &'static str,
    /// A sentence about the experiment.
    about: &'static str,
    /// The operation.
    operation: &'static str,
    /// The instructions of one operation, in order of execution.
    instructions: Vec<Instruction>,
    /// The fault that ended the operation, as a sentence; null if none did.
    ended: Option<String>,
}

/// An instruction that was executed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ExplainedInstruction"))]
pub struct Instruction {
    /// The number of instructions completed before this one.
    number: u64,
    /// The ring that executes it.
    ring: u8,
    /// Its address, in hexadecimal.
    address: String,
    /// Its bytes.
    bytes: String,
    /// The instruction.
    text: String,
    /// The exception that it raised, or null.
    exception: Option<String>,
    /// The steps that the processor took, one sentence each.
    steps: Vec<String>,
    /// The registers that the instruction changed.
    changes: Vec<Changed>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Changed {
    /// The register's name.
    register: &'static str,
    /// Its value before the instruction.
    before: String,
    /// Its value after the instruction.
    after: String,
}

impl Explained {
    /// Describes one operation of an experiment, and the fault that ended it on a vendor's processor, if one did.
    pub fn new(
        experiment: &Experiment,
        instructions: Vec<Instruction>,
        fault: Option<(Fault, Vendor)>,
    ) -> Self {
        let Experiment { name, about, operation, .. } = *experiment;
        let ended = fault.map(|(fault, vendor)| ended(&fault, experiment.expected(vendor), vendor));
        Self { experiment: name, about, operation, instructions, ended }
    }
}

fn ended(fault: &Fault, expected: Expected, vendor: Vendor) -> String {
    let is_it = |vector: u8, error: u32, ring: u8| {
        let level = fault.level.is_none_or(|level| level == ring);
        (fault.exception.0, fault.code.unwrap_or(0)) == (vector, error) && level
    };
    let agrees = match expected {
        Expected::Fault { vector, error, ring } if is_it(vector, error, ring) => "as its manual says",
        Expected::Fault { .. } => "where its manual has another fault",
        Expected::Done => "where its manual has none",
    };
    format!("The operation ends here, on {vendor} {agrees}: {fault}.")
}

impl Instruction {
    /// Describes an instruction by the states before and after it.
    pub fn from_moment(moment: &Moment) -> Self {
        let changes = moment.before.changes(&moment.after);
        Self {
            number: moment.number,
            ring: moment.before.cpl,
            address: format!("{:x}", moment.before.rip),
            bytes: moment.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: moment.text.clone(),
            exception: moment.exception.map(|fault| text::exception(fault.exception.0, fault.code)),
            // The first step names the crossing, as the instruction already does.
            steps: moment.steps.iter().skip(1).map(ToString::to_string).collect(),
            changes: changes
                .iter()
                .filter(|change| change.register != "rip")
                .map(Changed::from_change)
                .collect(),
        }
    }
}

impl Changed {
    fn from_change(change: &Change) -> Self {
        let Change { register, before, after } = *change;
        Self { register, before: format!("{before:x}"), after: format!("{after:x}") }
    }
}

/// Formats the trace as text, at most `width` columns wide.
pub fn explained(document: &Explained, width: usize) -> String {
    let mut text = heading(&format!("{}: {}", document.experiment, document.about), width);
    for instruction in &document.instructions {
        let Instruction { ring, address, bytes, text: reads, .. } = instruction;
        text.push_str(&paragraph(
            &format!("{address}  {reads}  [{bytes}]"),
            width,
            &format!("ring {ring}  "),
        ));
        if let Some(exception) = &instruction.exception {
            text.push_str(&paragraph(exception, width, "          ! "));
        }
        for (number, step) in instruction.steps.iter().enumerate() {
            text.push_str(&paragraph(step, width, &format!("      {:2}. ", number + 1)));
        }
        let changes: Vec<String> = instruction
            .changes
            .iter()
            .map(|change| format!("{} {} → {}", change.register, change.before, change.after))
            .collect();
        if !changes.is_empty() {
            text.push_str(&paragraph(&changes.join(", "), width, "          "));
        }
    }
    if let Some(ended) = &document.ended {
        text.push_str(&paragraph(ended, width, "  => "));
    }
    text
}
