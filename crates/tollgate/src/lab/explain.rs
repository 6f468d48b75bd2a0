//! One operation of an experiment, instruction by instruction.

use std::ops::ControlFlow;

use serde::Serialize;
use tollgate_lab::guest::{BASE, Experiment, Image, Parameters};
use tollgate_lab::{Change, Interpreter, Moment, Window, machine};

use super::{refused, text, vendor};
use crate::args::{Format, LabArgs};
use crate::failure::Failure;
use crate::out;
use crate::table::{heading, paragraph};

/// The trace of an operation.
#[derive(Serialize)]
struct Document {
    experiment: &'static str,
    about: &'static str,
    operation: &'static str,
    instructions: Vec<Instruction>,
}

#[derive(Serialize)]
struct Instruction {
    number: u64,
    ring: u8,
    address: String,
    bytes: String,
    text: String,
    exception: Option<String>,
    steps: Vec<String>,
    changes: Vec<Changed>,
}

#[derive(Serialize)]
struct Changed {
    register: &'static str,
    before: String,
    after: String,
}

/// Traces one operation of each experiment.
///
/// # Errors
/// An image that the interpreter cannot take.
pub fn explain(chosen: &[&'static Experiment], args: &LabArgs) -> Result<(), Failure> {
    let mut documents = Vec::new();
    for experiment in chosen {
        documents.push(trace(experiment, args)?);
    }
    match args.format {
        Format::Json => out::print_json(&documents),
        Format::Table => {
            let width = out::width();
            let pages: Vec<String> = documents.iter().map(|document| page(document, width)).collect();
            out::print(&pages.join("\n"))
        }
    }
}

fn trace(experiment: &'static Experiment, args: &LabArgs) -> Result<Document, Failure> {
    let chosen = std::iter::once(experiment).collect();
    let image = Image::new(&Parameters { operations: 1, rounds: 1, chosen, ..Parameters::default() });
    let start = image.start(experiment.number);
    let window = Window { from: start, after: 0, until: args.until, at_most: args.steps };
    let mut instructions = Vec::new();
    let mut note = |moment: &Moment| {
        instructions.push(Instruction::of(moment));
        // The branch back to the beginning of the loop ends the operation.
        let ends = start.is_some_and(|start| moment.text.starts_with('j') && leads_to(&moment.text, start));
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    Interpreter
        .watch(image.bytes(), BASE, image.entry(), machine(vendor(args.vendor)), window, &mut note)
        .map_err(|error| refused(&error))?;
    Ok(Document {
        experiment: experiment.name,
        about: experiment.about,
        operation: experiment.operation,
        instructions,
    })
}

/// Whether a branch, by its text, leads to an address: `jne short 0000000000401000h`.
fn leads_to(text: &str, address: u64) -> bool {
    let target = text.rsplit(' ').next().and_then(|word| word.strip_suffix('h'));
    target.and_then(|digits| u64::from_str_radix(digits, 16).ok()) == Some(address)
}

impl Instruction {
    fn of(moment: &Moment) -> Self {
        let changes = moment.before.changes(&moment.after);
        Self {
            number: moment.number,
            ring: moment.before.cpl,
            address: format!("{:x}", moment.before.rip),
            bytes: moment.bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: moment.text.clone(),
            exception: moment.exception.map(|fault| text::exception(fault.exception.0, fault.code)),
            // The first step names the crossing, which the instruction does already.
            steps: moment.steps.iter().skip(1).map(ToString::to_string).collect(),
            changes: changes.iter().filter(|change| change.register != "rip").map(Changed::of).collect(),
        }
    }
}

impl Changed {
    fn of(change: &Change) -> Self {
        let Change { register, before, after } = *change;
        Self { register, before: format!("{before:x}"), after: format!("{after:x}") }
    }
}

fn page(document: &Document, width: usize) -> String {
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
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_known_by_its_target() {
        assert!(leads_to("jne short 0000000000401000h", 0x40_1000));
        assert!(!leads_to("jne short 0000000000401000h", 0x40_1001));
        assert!(!leads_to("jmp rax", 0));
    }
}
