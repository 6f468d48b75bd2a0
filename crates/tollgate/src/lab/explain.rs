//! One operation of an experiment, or what the kernel sets up, instruction by instruction, in the interpreter.

use std::ops::ControlFlow;

use serde::Serialize;
use tollgate_engine::interrupt;
use tollgate_lab::guest::{BASE, Experiment, Group, Image, Parameters};
use tollgate_lab::output::{BOOT, Boot, Explained, Instruction, boot, explained, shown_by};
use tollgate_lab::{EngineChoice, Interpreter, Moment, Window, machine, setup};
use tollgate_x86::Vendor;
use tollgate_x86::walk::Fault;

use super::chosen::chosen;
use crate::args::Format;
use crate::args::lab::LabArgs;
use crate::failure::Failure;
use crate::out;

/// One part of the explanation.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ExplainedPage"))]
#[serde(untagged)]
pub enum Page {
    Experiment(Explained),
    Boot(Boot),
}

/// # Errors
/// An unknown experiment; an image that the interpreter cannot take.
pub fn explain(args: &LabArgs) -> Result<(), Failure> {
    let (boots, names): (Vec<String>, Vec<String>) =
        args.experiment.iter().cloned().partition(|name| name == BOOT);
    if !boots.is_empty() && args.until.is_some() {
        return Err(Failure::input("--until applies to experiments, not to boot"));
    }
    let mut pages = Vec::new();
    if !boots.is_empty() {
        pages.push(Page::Boot(set_up(args.vendor.map(Vendor::from))?));
    }
    if !names.is_empty() {
        for experiment in chosen(&names)? {
            pages.push(Page::Experiment(trace(experiment, args)?));
        }
    }
    match args.format {
        Format::Json => out::print_json(&pages),
        Format::Table => {
            let width = out::width();
            let text = |page: &Page| match page {
                Page::Experiment(document) => explained(document, width),
                Page::Boot(document) => boot(document, width),
            };
            out::print(&pages.iter().map(text).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The kernel's set-up, with the outcomes of the experiments that show the purpose of each write.
fn set_up(vendor: Option<Vendor>) -> Result<Boot, Failure> {
    interrupt::install();
    let setup = setup::setup(vendor)?;
    let results =
        tollgate_lab::run(&shown_by(&setup), EngineChoice::Interpreter, vendor, &interrupt::requested)?;
    Ok(Boot::new(&setup, &results))
}

fn trace(experiment: &'static Experiment, args: &LabArgs) -> Result<Explained, Failure> {
    let chosen = std::iter::once(experiment).collect();
    let image = Image::new(&Parameters { operations: 1, rounds: 1, chosen, ..Parameters::default() });
    let vendor = args.vendor.map(Vendor::from);
    let mut traced = operation(&image, experiment, vendor, args)?;
    if traced.instructions.is_empty() {
        // The operation is never reached: the fault shows on the way to it.
        traced = way(&image, experiment, vendor, args)?;
    }
    let vendor = vendor.unwrap_or(Vendor::Intel);
    Ok(Explained::new(experiment, traced.instructions, traced.fault.map(|fault| (fault, vendor))))
}

#[derive(Default)]
struct Traced {
    instructions: Vec<Instruction>,
    fault: Option<Fault>,
}

fn operation(
    image: &Image,
    experiment: &Experiment,
    vendor: Option<Vendor>,
    args: &LabArgs,
) -> Result<Traced, Failure> {
    let start = image.start(experiment.number);
    let mut traced = Traced::default();
    let mut begin = None;
    let mut note = |moment: &Moment| {
        let own = *begin.get_or_insert((moment.before.cpl, moment.before.general[RSP]));
        // The loop of the operation returns to its caller, so the operation is over, even if the loop begins after `start`.
        if moment.text == "ret" && own == (moment.before.cpl, moment.before.general[RSP]) {
            return ControlFlow::Break(());
        }
        traced.instructions.push(Instruction::from_moment(moment));
        // Traps are about an exception; every other experiment ends with one.
        traced.fault = moment.exception.filter(|_| experiment.group != Group::Traps);
        // The branch back to the beginning of the loop ends the operation.
        let ends = start.is_some_and(|start| moment.text.starts_with('j') && leads_to(&moment.text, start));
        if ends || traced.fault.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let window = Window { from: start, after: 0, until: args.until, at_most: args.steps };
    Interpreter.watch(image.bytes(), BASE, image.entry(), machine(vendor), window, &mut note)?;
    Ok(traced)
}

fn way(
    image: &Image,
    experiment: &Experiment,
    vendor: Option<Vendor>,
    args: &LabArgs,
) -> Result<Traced, Failure> {
    let mut traced = Traced::default();
    let mut note = |moment: &Moment| {
        traced.instructions.push(Instruction::from_moment(moment));
        traced.fault = moment.exception;
        if traced.fault.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let from = image.preparation(experiment.number);
    let window = Window { from, after: 0, until: args.until, at_most: args.steps };
    Interpreter.watch(image.bytes(), BASE, image.entry(), machine(vendor), window, &mut note)?;
    Ok(traced)
}

const RSP: usize = 4;

/// Whether a branch, by its text, leads to an address: `jne short 0000000000401000h`.
fn leads_to(text: &str, address: u64) -> bool {
    let target = text.rsplit(' ').next().and_then(|word| word.strip_suffix('h'));
    target.and_then(|digits| u64::from_str_radix(digits, 16).ok()) == Some(address)
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
